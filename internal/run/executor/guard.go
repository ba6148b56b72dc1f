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

// Guards tell which files a program may not read, or not change, unless a person
// agreed to this very call for them. They are the rules' own lists. Names are
// relative to the workspace, with slashes, or absolute.
type Guards interface {
	Secret(name string) bool                      // its reading is guarded
	Protected(name string) bool                   // its changing is
	SecretWhole(dir string) bool                  // all that is in a folder
	ProtectedWhole(dir string) bool               //
	Named(dir string, commands [][]string) []Path // files that arguments may mean; whoever agreed to the call agreed to these
}

// A Survey is what guards mean in the folders that a program is given, as far
// as it is there. The names are absolute.
type Survey struct {
	Secret    []string // not to be read
	Protected []string // not to be changed
	Unseen    string   // why not all was looked at; "" when it was

	shown func(abs string) string
}

// A Ground is a folder that a program is given.
type Ground struct {
	Dir   string // absolute, clean
	Write bool
}

const (
	mostEntries = 100_000 // looked at in one survey
	mostGuarded = 2_000   // found by it
)

// published reports whether a folder holds what package managers fetched: its
// files are not the project's, and there are very many of them.
func published(name string) bool {
	switch name {
	case "node_modules", "bower_components", ".pnpm-store", "site-packages", ".venv", "venv", ".tox", "__pycache__":
		return true
	}
	return false
}

// Look finds what is guarded in some folders. What a call names, and so what was
// agreed to with it, is left out. Folders near the top come first; where there
// are too many files the survey says what it has not seen.
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

// seenFrom gives the name by which rules know a file.
func seenFrom(workspace, abs string) string {
	if !filepath.IsAbs(abs) {
		return path.Clean(filepath.ToSlash(abs))
	}
	if rel, err := filepath.Rel(workspace, abs); workspace != "" && err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(abs)
}

// A walk is a survey on its way.
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
	protected bool // whole: nothing in it needs to be protected by itself
}

func (w *walk) folder(dir folder) {
	f, err := os.Open(dir.abs)
	if err != nil {
		return // closed to us, and so to the program, or gone
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

// link guards the file that a guarded name leads to. The link itself is only a
// name.
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

// otherManifest reports whether a file is a manifest.json, or a commands.yaml,
// and no part of an extension package: many programs have one, and builds make
// them anew.
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

// agrees reports whether one of the names that were agreed to is the name,
// holds it, or is a pattern of it.
func agrees(agreed []string, name string) bool {
	return slices.ContainsFunc(agreed, func(a string) bool {
		if a == name || strings.HasPrefix(name, strings.TrimSuffix(a, "/")+"/") {
			return true
		}
		ok, err := path.Match(a, name)
		return err == nil && ok
	})
}

// touches reports whether something in a folder, or the folder, was agreed to.
func touches(agreed []string, dir string) bool {
	return agrees(agreed, dir) || slices.ContainsFunc(agreed, func(a string) bool { return strings.HasPrefix(a, dir+"/") })
}

// shownList names files as people know them, the first few.
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

// Hold has the sandbox keep a program from what a survey found, and reports
// whether it can here.
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

// Readable gives the secrets that a program could read where nothing can mask
// them, as files that the call names: so that a person is asked. Who requires no
// isolation has agreed to that.
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

// Tell says in a result what a survey kept a program from, or could not. In its
// text it says so only where that may be why the program failed.
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

// explain adds what a model needs to know where a guard was in the way.
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

// made lists what a later survey found protected that was not there before.
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
