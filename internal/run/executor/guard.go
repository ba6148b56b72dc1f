package executor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/run/sandbox"
)

// Guards say which files a program must not read or change unless the call was
// approved with their names in it. They are the rules' own lists. Names are
// absolute, or relative to the workspace with slashes.
type Guards interface {
	Secret(name string) bool                      // reading it is guarded
	Protected(name string) bool                   // changing it is guarded
	SecretWhole(dir string) bool                  // reading anything in a folder is guarded
	ProtectedWhole(dir string) bool               //
	Named(dir string, commands [][]string) []Path // files that arguments may name; approving the call approves these
}

// A Survey lists the guarded files that exist in the folders of a program. The
// names are absolute. A protected link is listed, and so is what it leads to.
type Survey struct {
	Secret    []string // must not be read
	Protected []string // must not be changed
	Unseen    string   // why the survey is incomplete; "" if it is complete

	shut  string // a folder in Secret that was not looked at, because only the program can open it
	shown func(abs string) string
}

// A Ground is a folder that a program is given.
type Ground struct {
	Dir   string // absolute, clean
	Write bool
	As    string // the name by which the rules know it; "" is that relative to the workspace, or else Dir
	Top   bool   // only what lies directly in it is guarded
}

const (
	mostEntries      = 1_000_000 // examined in one survey
	mostGuarded      = 2_000     // found in one survey
	mostCertificates = 64        // read in one survey
)

// published reports whether a folder contains what package managers downloaded.
// Its files are not the project's and are replaced as a whole, so only secrets
// are guarded there.
func published(name string) bool {
	switch name {
	case "node_modules", "bower_components", ".pnpm-store", "site-packages", ".venv", "venv", ".tox", "__pycache__":
		return true
	}
	return false
}

// Look finds the guarded files in the grounds. Files that the call names, and
// that were approved with it, are left out. It searches breadth first; if it
// cannot look at everything, the survey says why and what it has not seen.
func Look(ctx context.Context, g Guards, workspace string, grounds []Ground, agreed []Path) Survey {
	s := Survey{shown: func(abs string) string { return shownIn(grounds, workspace, abs) }}
	if g == nil {
		return s
	}
	w := walk{guards: g, out: &s, grounds: grounds, listed: map[string]bool{}}
	w.agree(workspace, agreed)
	for _, ground := range grounds {
		w.queue = append(w.queue, folder{abs: ground.Dir, name: s.shown(ground.Dir), write: ground.Write, root: true, top: ground.Top})
	}
	for len(w.queue) > 0 && s.Unseen == "" {
		next := w.queue[0]
		w.queue = w.queue[1:]
		if w.folder(ctx, next); s.Unseen != "" {
			s.Unseen += "; not looked at: " + next.name
			if n := len(w.queue); n > 0 {
				s.Unseen += " and " + strconv.Itoa(n) + " more folders"
			}
		}
	}
	return s
}

// shownIn returns the name by which the rules know a file of the grounds.
func shownIn(grounds []Ground, workspace, abs string) string {
	for _, g := range grounds {
		if rel, err := filepath.Rel(g.Dir, abs); g.As != "" && err == nil && filepath.IsLocal(rel) {
			return path.Join(g.As, filepath.ToSlash(rel))
		}
	}
	return seenFrom(workspace, abs)
}

// seenFrom returns the name by which the rules know a file.
func seenFrom(workspace, abs string) string {
	if !filepath.IsAbs(abs) {
		return path.Clean(filepath.ToSlash(abs))
	}
	if rel, err := filepath.Rel(workspace, abs); workspace != "" && err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(abs)
}

// A walk is a survey in progress.
type walk struct {
	guards            Guards
	out               *Survey
	grounds           []Ground
	queue             []folder
	entries           int
	certificates      int
	listed            map[string]bool // found already: "s" or "p" and the absolute name
	mayRead, mayWrite []string
}

type folder struct {
	abs, name string // name is how the rules know it
	write     bool   // protected files in it are guarded
	protected bool   // the whole folder is protected, so nothing in it needs its own protection
	published bool   // it, or one above it, is from a package manager
	linked    bool   // a link led here; no more links are followed
	root      bool   // it is a ground
	top       bool   // the folders in it are not looked at
}

func (f *folder) child(base string) (abs, name string) {
	abs = filepath.Join(f.abs, base)
	switch {
	case f.name == ".":
		return abs, base
	case strings.HasSuffix(f.name, "/"):
		return abs, f.name + base
	}
	return abs, f.name + "/" + base
}

// agree notes which files a call was approved for: by the names that it uses,
// and by those that links lead to.
func (w *walk) agree(workspace string, agreed []Path) {
	for _, p := range agreed {
		name := p.Name
		for _, home := range []string{"$HOME/", "${HOME}/"} {
			if rest, ok := strings.CutPrefix(name, home); ok {
				name = "~/" + rest
			}
		}
		abs := name
		if filepath.IsAbs(name) {
			name = w.out.shown(name)
		} else {
			name, abs = path.Clean(filepath.ToSlash(name)), filepath.Join(workspace, name)
		}
		names := []string{name}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			if target, _, ok := w.granted(real); ok && w.out.shown(target) != name {
				names = append(names, w.out.shown(target))
			}
		}
		if w.guards.Secret(name) {
			w.mayRead = append(w.mayRead, names...)
		}
		if p.Write && w.guards.Protected(name) {
			w.mayWrite = append(w.mayWrite, names...)
		}
	}
}

// granted returns the name of a resolved file within the grounds, and the
// ground.
func (w *walk) granted(real string) (string, Ground, bool) {
	for _, g := range w.grounds {
		if rel, err := filepath.Rel(Resolved(g.Dir), real); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(g.Dir, rel), g, true
		}
	}
	return "", Ground{}, false
}

func (w *walk) secret(abs string) {
	if !w.listed["s"+abs] {
		w.listed["s"+abs] = true
		w.out.Secret = append(w.out.Secret, abs)
	}
}

func (w *walk) protect(abs string) {
	if !w.listed["p"+abs] && !beneathAny(w.out.Protected, abs) {
		w.listed["p"+abs] = true
		w.out.Protected = append(w.out.Protected, abs)
	}
}

func (w *walk) folder(ctx context.Context, dir folder) {
	f, err := os.Open(dir.abs)
	if err == nil {
		defer f.Close()
		_, err = os.Lstat(dir.abs + "/.") // names can be listed and yet not be reached
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case errors.Is(err, fs.ErrPermission) && !dir.root:
		w.out.shut = dir.name // the program may be able to open it: chmod
		w.secret(dir.abs)
		return
	case err != nil:
		w.out.Unseen = "cannot be opened: " + cause(err)
		return
	}
	for {
		list, err := f.ReadDir(1024)
		for _, e := range list {
			w.entry(dir, e)
		}
		w.entries += len(list)
		switch {
		case w.out.Unseen != "":
		case ctx.Err() != nil:
			w.out.Unseen = "the time limit was reached"
		case w.entries > mostEntries:
			w.out.Unseen = "there are more than " + strconv.Itoa(mostEntries) + " files"
		case len(w.out.Secret)+len(w.out.Protected) > mostGuarded:
			w.out.Unseen = "there are more than " + strconv.Itoa(mostGuarded) + " files that are guarded"
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist):
			w.out.Unseen = "cannot be read: " + cause(err)
		}
		if err != nil || w.out.Unseen != "" {
			return
		}
	}
}

// cause returns an error without the path that it repeats.
func cause(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

func (w *walk) entry(in folder, e fs.DirEntry) {
	abs, name := in.child(e.Name())
	switch {
	case e.IsDir():
		w.dir(in, abs, name)
	case e.Type()&fs.ModeSymlink != 0:
		w.link(in, abs, name)
	case e.Type().IsRegular():
		w.file(in, abs, name)
	}
}

func (w *walk) dir(in folder, abs, name string) {
	next := in
	next.abs, next.name, next.root = abs, name, false
	if published(path.Base(name)) {
		next.published, next.write = true, false
	}
	if w.guards.SecretWhole(name) {
		if !w.touched(w.mayRead, abs, name) {
			w.secret(abs)
			return
		}
	} else if next.write && !in.protected && w.guards.ProtectedWhole(name) && !w.touched(w.mayWrite, abs, name) {
		w.protect(abs)
		next.protected = true
	}
	if !in.top {
		w.queue = append(w.queue, next)
	}
}

func (w *walk) file(in folder, abs, name string) {
	switch {
	case w.guards.Secret(name):
		if !w.agreed(w.mayRead, abs, name) && !(in.published && w.publicKeys(abs)) {
			w.secret(abs)
		}
	case in.write && !in.protected && w.guards.Protected(name) && !otherManifest(abs) && !w.agreed(w.mayWrite, abs, name):
		w.protect(abs)
	}
}

// agreed reports whether a file was approved: by the name under which it was
// found, or by its own.
func (w *walk) agreed(list []string, abs, name string) bool {
	return len(list) > 0 && (agrees(list, name) || agrees(list, w.out.shown(abs)))
}

func (w *walk) touched(list []string, abs, name string) bool {
	return len(list) > 0 && (touches(list, name) || touches(list, w.out.shown(abs)))
}

// publicKeys reports whether a file of a package holds nothing but
// certificates, which programs need and which are no secret.
func (w *walk) publicKeys(abs string) bool {
	const longest = 4 << 20
	if filepath.Ext(abs) != ".pem" || w.certificates == mostCertificates {
		return false
	}
	w.certificates++
	f, err := os.Open(abs)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, longest+1))
	return err == nil && len(text) <= longest && bytes.Contains(text, []byte("-----BEGIN CERTIFICATE-----")) && !bytes.Contains(text, []byte("PRIVATE KEY"))
}

// link guards what a guarded link leads to, and a protected link itself, so that
// it cannot be replaced. A link to another folder gives the files in it more
// names, so they are looked at under these as well.
func (w *walk) link(in folder, abs, name string) {
	secret := w.guards.Secret(name) || w.guards.SecretWhole(name)
	protected := !secret && in.write && !in.protected && (w.guards.Protected(name) || w.guards.ProtectedWhole(name))
	if !secret && !protected && (in.published || in.linked || in.top) {
		return
	}
	if protected = protected && !w.agreed(w.mayWrite, abs, name); protected {
		w.protect(abs)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return // it leads nowhere
	}
	target, ground, ok := w.granted(real)
	if !ok {
		return // it leads to nothing that the program is given
	}
	info, err := os.Lstat(real)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	switch {
	case secret && w.touched(w.mayRead, target, name):
	case (secret || protected && ground.Write) && within(target, in.abs):
		w.out.Unseen = name + " leads to a folder that contains it" // which cannot be closed
	case secret:
		w.secret(target)
	case protected && ground.Write:
		w.protect(target)
	case info.IsDir() && !in.published && !in.linked:
		w.queue = append(w.queue, folder{abs: target, name: name, write: in.write && ground.Write, protected: in.protected, linked: true})
	}
}

// within reports whether abs is dir or lies below it.
func within(dir, abs string) bool {
	return abs == dir || strings.HasPrefix(abs, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func beneathAny(dirs []string, abs string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(abs, d+string(filepath.Separator)) })
}

// otherManifest reports whether a file is a manifest.json or commands.yaml that
// is not part of an extension package: many programs have one, and builds
// recreate them.
func otherManifest(abs string) bool {
	dir := filepath.Dir(abs)
	there := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil })
	}
	switch filepath.Base(abs) {
	case "manifest.json":
		return !there("commands.yaml", "commands.yml", "commands")
	case "commands.yaml":
		return !there("manifest.json", filepath.Join("..", "manifest.json"))
	}
	return false
}

// agrees reports whether one of the approved names is the name, contains it, or
// is a pattern that matches it.
func agrees(agreed []string, name string) bool {
	return slices.ContainsFunc(agreed, func(a string) bool {
		if a == name || strings.HasPrefix(name, strings.TrimSuffix(a, "/")+"/") {
			return true
		}
		ok, err := path.Match(a, name)
		return err == nil && ok
	})
}

// touches reports whether a folder, or something in it, was approved.
func touches(agreed []string, dir string) bool {
	return agrees(agreed, dir) || slices.ContainsFunc(agreed, func(a string) bool { return strings.HasPrefix(a, dir+"/") })
}

// shownList returns the first few files by the names that people know.
func (s *Survey) shownList(list []string) string {
	const most = 12
	var out []string
	for _, abs := range list[:min(len(list), most)] {
		out = append(out, s.shown(abs))
	}
	text := strings.Join(out, ", ")
	if n := len(list) - most; n > 0 {
		text += " and " + strconv.Itoa(n) + " more"
	}
	return text
}

// Hold makes the sandbox keep a program from the files of a survey, and reports
// whether it can do so here.
func (s *Survey) Hold(ctx context.Context, spec *sandbox.Spec) bool {
	if spec.Require == sandbox.Off {
		return false
	}
	// If it is unclear what holds, it may be clear at the start.
	if found := sandbox.Probe(ctx); found.Unclear == "" && found.Isolation.Profile != sandbox.Full {
		return false
	}
	work := ""
	if spec.Work != nil {
		work, _ = filepath.Abs(spec.Work.Name())
	}
	named := func(list []string) []string {
		out := make([]string, len(list))
		for i, abs := range list {
			out[i] = abs
			if rel, err := filepath.Rel(work, abs); work != "" && err == nil && filepath.IsLocal(rel) {
				out[i] = rel
			}
		}
		return out
	}
	spec.Mask, spec.Protect = named(s.Secret), named(s.Protected)
	return true
}

// Asks adds to the facts of a call why it needs approval: the secrets that a
// program could read where the sandbox cannot mask them, as if the call named
// them, and what the survey has not seen. If the configuration requires no
// isolation, it adds nothing.
func (s *Survey) Asks(ctx context.Context, require sandbox.Requirement, f *Facts) {
	full := sandbox.Probe(ctx).Isolation.Profile == sandbox.Full
	if require == sandbox.Off || require == sandbox.BestEffort && !full {
		return
	}
	f.Unseen = s.Unseen
	if full {
		return
	}
	if s.shut != "" && f.Unseen == "" {
		f.Unseen = "the sandbox cannot hide a folder that only the program can open: " + s.shut
	}
	for _, abs := range s.Secret[:min(len(s.Secret), 100)] {
		f.Paths = append(f.Paths, Path{Name: s.shown(abs)})
	}
}

// unseenMark ends the code of a call that was decided on although the survey
// was incomplete.
const unseenMark = "+unseen"

// BoundTo returns what a call is bound to, for [capability.Call.Code]: the digest of
// the files that it runs, and whether the survey was incomplete.
func BoundTo(files []File, unseen string) string {
	if unseen != "" {
		return Digest(files) + unseenMark
	}
	return Digest(files)
}

// Decided rejects a call if its folders could be searched completely when it was
// decided on, and cannot be any more: that was not asked about. It returns
// the call with the digest of its files alone.
func (s *Survey) Decided(ctx context.Context, call capability.Call, require sandbox.Requirement) (capability.Call, error) {
	code, marked := strings.CutSuffix(call.Code, unseenMark)
	call.Code = code
	var now Facts
	if s.Asks(ctx, require, &now); now.Unseen == "" || marked {
		return call, nil
	}
	return call, &capability.Error{
		Kind: capability.Conflict, Op: "run", Target: string(call.Target), Rule: "arguments.unseen",
		Err: errors.New("Ken could not check every file for secrets, and the call was not approved without this check: " + now.Unseen), Fix: "make the call again",
	}
}

// Tell adds to a result which files a survey kept from a program, or could not.
// The text mentions them only if that may be why the program failed.
func (s *Survey) Tell(r *capability.Result, held bool, after Survey) {
	if s.Unseen != "" {
		r.Meta["unguarded"] = s.Unseen
	}
	secret, protected := "masked", "protected"
	if !held {
		secret, protected = "unmasked", "unprotected"
	}
	if len(s.Secret) > 0 {
		r.Meta[secret] = s.shownList(s.Secret)
	}
	if len(s.Protected) > 0 {
		r.Meta[protected] = s.shownList(s.Protected)
	}
	if held {
		s.explain(r)
	}
	Made(r, s.made(after))
}

// explain adds what a model needs to know if a guard was in the way.
func (s *Survey) explain(r *capability.Result) {
	says := func(words ...string) bool {
		return slices.ContainsFunc(r.Parts, func(p capability.Part) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(p.Text, w) })
		})
	}
	if len(s.Secret) > 0 && says("ermission denied", "EACCES", "resource busy", "EBUSY") {
		r.Parts = append(r.Parts, capability.Part{Text: "This call cannot read these files, because they contain secrets: " + s.shownList(s.Secret) +
			". To read one, name it in the command; Ken then asks for approval. Changed by: policy.secrets."})
	}
	if len(s.Protected) > 0 && says("ead-only file system", "EROFS", "resource busy", "EBUSY") {
		r.Parts = append(r.Parts, capability.Part{Text: "Read-only in this call, because they control an agent or run automatically: " + s.shownList(s.Protected) +
			". To change one, name it in the command; Ken then asks for approval. Changed by: policy.protect."})
	}
}

// made returns the protected files of a later survey that did not exist before.
func (s *Survey) made(after Survey) []string {
	var out []string
	for _, abs := range after.Protected {
		if !slices.Contains(s.Protected, abs) && !beneathAny(s.Protected, abs) {
			out = append(out, s.shown(abs))
		}
	}
	if most := 12; len(out) > most {
		out = append(out[:most], "and "+strconv.Itoa(len(out)-most)+" more")
	}
	return out
}
