package executor

import (
	"context"
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
// names are absolute.
type Survey struct {
	Secret    []string // must not be read
	Protected []string // must not be changed
	Unseen    string   // why the survey is incomplete; "" if it is complete

	shown func(abs string) string
}

// A Ground is a folder that a program is given.
type Ground struct {
	Dir   string // absolute, clean
	Write bool
}

const (
	mostEntries = 100_000 // examined in one survey
	mostGuarded = 2_000   // found in one survey
)

// published reports whether a folder contains what package managers downloaded:
// its files are not the project's, and there are very many of them.
func published(name string) bool {
	switch name {
	case "node_modules", "bower_components", ".pnpm-store", "site-packages", ".venv", "venv", ".tox", "__pycache__":
		return true
	}
	return false
}

// Look finds the guarded files in the grounds. Files that the call names, and
// that were approved with it, are left out. It searches breadth first; if there
// are too many files, the survey says what it has not seen.
func Look(ctx context.Context, g Guards, workspace string, grounds []Ground, agreed []Path) Survey {
	s := Survey{shown: func(abs string) string { return seenFrom(workspace, abs) }}
	if g == nil {
		return s
	}
	w := walk{guards: g, out: &s, grounds: grounds}
	for _, p := range agreed {
		p.Name = seenFrom(workspace, p.Name)
		if g.Secret(p.Name) {
			w.mayRead = append(w.mayRead, p.Name)
		}
		if p.Write && g.Protected(p.Name) {
			w.mayWrite = append(w.mayWrite, p.Name)
		}
	}
	for _, ground := range grounds {
		w.queue = append(w.queue, folder{abs: ground.Dir, write: ground.Write})
	}
	for len(w.queue) > 0 && s.Unseen == "" {
		next := w.queue[0]
		w.queue = w.queue[1:]
		if ctx.Err() != nil {
			s.Unseen = "its time was over"
			break
		}
		w.folder(next)
	}
	if s.Unseen != "" && len(w.queue) > 0 {
		s.Unseen += "; not looked at: " + s.shown(w.queue[0].abs) + " and " + strconv.Itoa(len(w.queue)-1) + " more folders"
	}
	return s
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
	mayRead, mayWrite []string
}

type folder struct {
	abs       string
	write     bool
	protected bool // the whole folder is protected, so nothing in it needs its own protection
}

func (w *walk) folder(dir folder) {
	f, err := os.Open(dir.abs)
	if err != nil {
		return // unreadable for us and so for the program, or gone
	}
	defer f.Close()
	for {
		list, err := f.ReadDir(1024)
		for _, e := range list {
			w.entry(dir, e)
		}
		w.entries += len(list)
		if w.entries > mostEntries {
			w.out.Unseen = "there are more than " + strconv.Itoa(mostEntries) + " files"
			return
		}
		if len(w.out.Secret)+len(w.out.Protected) > mostGuarded {
			w.out.Unseen = "there are more than " + strconv.Itoa(mostGuarded) + " files that are guarded"
			return
		}
		if err != nil || len(list) == 0 {
			return
		}
	}
}

func (w *walk) entry(in folder, e fs.DirEntry) {
	abs := filepath.Join(in.abs, e.Name())
	name := w.out.shown(abs)
	switch {
	case e.IsDir():
		w.dir(in, abs, name)
	case e.Type()&fs.ModeSymlink != 0:
		if w.guards.Secret(name) || in.write && w.guards.Protected(name) {
			w.link(in, abs, name)
		}
	case e.Type().IsRegular():
		w.file(in, abs, name)
	}
}

func (w *walk) dir(in folder, abs, name string) {
	next := folder{abs: abs, write: in.write, protected: in.protected}
	if w.guards.SecretWhole(name) {
		if !touches(w.mayRead, name) {
			w.out.Secret = append(w.out.Secret, abs)
			return
		}
	} else if in.write && !in.protected && w.guards.ProtectedWhole(name) && !touches(w.mayWrite, name) {
		w.out.Protected = append(w.out.Protected, abs)
		next.protected = true
	}
	if base := path.Base(name); published(base) || base == ".git" && (next.protected || !in.write) {
		return
	}
	w.queue = append(w.queue, next)
}

func (w *walk) file(in folder, abs, name string) {
	switch {
	case w.guards.Secret(name):
		if !agrees(w.mayRead, name) {
			w.out.Secret = append(w.out.Secret, abs)
		}
	case in.write && !in.protected && w.guards.Protected(name) && !otherManifest(abs) && !agrees(w.mayWrite, name):
		w.out.Protected = append(w.out.Protected, abs)
	}
}

// link guards the file that a guarded link points to. The link itself needs no
// guard.
func (w *walk) link(in folder, abs, name string) {
	real, err := filepath.EvalSymlinks(abs)
	if err != nil || real == abs {
		return
	}
	info, err := os.Lstat(real)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	for _, g := range w.grounds {
		dir := Resolved(g.Dir)
		rel, err := filepath.Rel(dir, real)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		target := filepath.Join(g.Dir, rel)
		if w.guards.Secret(name) {
			if !agrees(w.mayRead, name) && !agrees(w.mayRead, w.out.shown(target)) && !slices.Contains(w.out.Secret, target) {
				w.out.Secret = append(w.out.Secret, target)
			}
		} else if g.Write && !agrees(w.mayWrite, name) && !slices.Contains(w.out.Protected, target) && !beneathAny(w.out.Protected, target) {
			w.out.Protected = append(w.out.Protected, target)
		}
		return
	}
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
	if spec.Require == sandbox.Off || sandbox.Probe(ctx).Isolation.Profile != sandbox.Full {
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

// Readable returns the secrets that a program could read if the sandbox cannot
// mask them, as if the call named them, so that approval is required. If the
// configuration requires no isolation, it returns none.
func (s *Survey) Readable(ctx context.Context, require sandbox.Requirement) []Path {
	if require == sandbox.Off || require == sandbox.BestEffort || sandbox.Probe(ctx).Isolation.Profile == sandbox.Full {
		return nil
	}
	var out []Path
	for _, abs := range s.Secret[:min(len(s.Secret), 100)] {
		out = append(out, Path{Name: s.shown(abs)})
	}
	return out
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
	if len(s.Secret) > 0 && says("ermission denied", "EACCES") {
		r.Parts = append(r.Parts, capability.Part{Text: "Closed to this call, because they hold secrets: " + s.shownList(s.Secret) +
			". To read one, name it in the command: a person is asked then. Changed by: policy.secrets."})
	}
	if len(s.Protected) > 0 && says("ead-only file system", "EROFS", "resource busy", "EBUSY") {
		r.Parts = append(r.Parts, capability.Part{Text: "Read-only in this call, because they govern an agent or are run by themselves: " + s.shownList(s.Protected) +
			". To change one, name it in the command: a person is asked then. Changed by: policy.protect."})
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
