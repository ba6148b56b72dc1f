package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

const (
	maxTreeDepth = 16
	maxTreeFiles = 200_000
	headSize     = 4 << 10
)

// folderFormat returns the format that makes a folder one unit, or nil.
func (t *Tree) folderFormat(dir string) *format.Format {
	for i := range t.formats {
		f := &t.formats[i]
		for _, marker := range f.Markers {
			if t.root.Exists(path.Join(dir, marker)) && (f.Accepts == nil || f.Accepts(t.root, dir)) {
				return f
			}
		}
	}
	return nil
}

func (t *Tree) isMarker(name string) bool {
	return slices.ContainsFunc(t.formats, func(f format.Format) bool { return slices.Contains(f.Markers, name) })
}

func (t *Tree) formatNamed(name string) *format.Format {
	i := slices.IndexFunc(t.formats, func(f format.Format) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &t.formats[i]
}

// A walk reads a tree, or parts of it, once. It changes nothing of the Tree:
// what it found is put in place when all of it was read.
type walk struct {
	t     *Tree
	ctx   context.Context
	files int

	// fresh reads as if nothing had been read before. Otherwise a folder
	// that was a unit stays one while its marker is only half written.
	fresh bool

	// lazy takes over units whose files are as they were.
	lazy bool

	found    map[string]*loadedUnit    // units, and files that no format claims, by path
	unlisted []string                  // folders that are there but do not open
	shapes   map[string]*format.Format // formats of folders, as far as they were looked up
}

func newWalk(ctx context.Context, t *Tree) *walk {
	return &walk{t: t, ctx: ctx, found: map[string]*loadedUnit{}, shapes: map[string]*format.Format{}}
}

// all reads the whole tree.
func (w *walk) all() {
	if w.t.only != "" {
		w.file(w.t.only, nil)
		return
	}
	w.dir(".", 0, false)
}

// at reads every unit at and below a path.
func (w *walk) at(p string) {
	if p == "." || w.t.only != "" {
		w.all()
		return
	}
	if w.t.written(p) {
		return
	}
	info, err := fs.Lstat(w.t.root.FS, p)
	inUnit := w.inUnit(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		w.unreadable(p, safefs.Explain(err))
	case info.Mode()&fs.ModeSymlink != 0:
		w.link(p, inUnit)
	case info.IsDir():
		if !safefs.SkipFolder(path.Base(p)) {
			w.dir(p, 1+strings.Count(p, "/"), inUnit)
		}
	case !inUnit:
		w.file(p, fs.FileInfoToDirEntry(info))
	}
}

// inUnit reports whether a path lies in a folder unit; being one does not
// count.
func (w *walk) inUnit(p string) bool {
	for p != "." {
		p = path.Dir(p)
		if w.shape(p) != nil {
			return true
		}
	}
	return false
}

// shape returns the format that makes a folder one unit, or nil.
func (w *walk) shape(dir string) *format.Format {
	if f, known := w.shapes[dir]; known {
		return f
	}
	f := w.t.folderFormat(dir)
	if f == nil {
		f = w.formerShape(dir)
	}
	w.shapes[dir] = f
	return f
}

// formerShape returns the format that a folder had, while all of its documents
// are still there: one of them may be half written.
func (w *walk) formerShape(dir string) *format.Format {
	old := w.t.units[dir]
	if w.fresh || old == nil || !old.folder || !old.holds() {
		return nil
	}
	if _, gone := lookAt(w.t.root, dir, nil).lost(old.look); gone {
		return nil
	}
	return w.t.formatNamed(old.format)
}

// written reports whether a path lies in the work directory of an extension,
// extensions/ID/work. Its programs write there, and what they write must not
// become a capability.
func (t *Tree) written(p string) bool {
	parts := strings.Split(path.Join(t.around, p), "/")
	for i := range len(parts) - 2 {
		if parts[i] == "extensions" && parts[i+2] == "work" {
			return true
		}
	}
	return false
}

// dir reads a folder. Inside a folder that is itself a unit, only further
// folder units count: the other files belong to the unit around them.
func (w *walk) dir(p string, depth int, inUnit bool) {
	if w.ctx.Err() != nil {
		return
	}
	if depth > maxTreeDepth {
		w.problem(p, "too-deep", fmt.Sprintf("folders nested deeper than %d are not read", maxTreeDepth), "move the folder up")
		return
	}
	entries, err := w.t.root.List(p)
	if errors.Is(err, fs.ErrNotExist) {
		return // it went away since it was seen
	}
	if err != nil {
		w.unlisted = append(w.unlisted, p)
		w.unreadable(p, err)
		return
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return w.t.isMarker(e.Name()) }) {
		if f := w.shape(p); f != nil {
			w.unit(p, f)
			inUnit = true
		}
	}
	for _, e := range entries {
		child := path.Join(p, e.Name())
		if w.files++; w.files > maxTreeFiles {
			w.problem(p, "too-many-files", fmt.Sprintf("more than %d files; the rest is not read", maxTreeFiles), "name a smaller folder")
			return
		}
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			w.link(child, inUnit)
		case e.IsDir():
			if !safefs.SkipFolder(e.Name()) && !w.t.written(child) {
				w.dir(child, depth+1, inUnit)
			}
		case !inUnit:
			w.file(child, e)
		}
	}
}

// unit reads a folder unit, the folders in it left aside.
func (w *walk) unit(p string, f *format.Format) {
	seen := lookAt(w.t.root, p, nil) // before reading: a change meanwhile then shows
	if w.takeOver(p, seen) {
		return
	}
	h := loadedFrom(w.t.readUnitLocked(w.ctx, p, f.Name), f.Keep)
	h.look, h.folder = seen, true
	w.found[p] = h
}

// takeOver uses what was read before, if the files are as they were.
func (w *walk) takeOver(p string, seen look) bool {
	old, ok := w.t.units[p]
	if !w.lazy || !ok || !old.sameAs(seen) {
		return false
	}
	w.found[p] = old
	return true
}

// link decides about a symbolic link: one that stays inside the root and names
// a file is read; one that names a folder inside is left, since that folder is
// read under its own path; one that leaves the root is refused.
func (w *walk) link(p string, inUnit bool) {
	info, err := fs.Stat(w.t.root.FS, p)
	if err != nil {
		if !inUnit && !isScratch(path.Base(p)) && (isDocument(p) || path.Ext(p) == "") {
			w.unreadable(p, safefs.Explain(err))
			w.found[p].look = lookAt(w.t.root, p, nil) // for what the link hangs on
		}
		return
	}
	if !info.IsDir() && !inUnit {
		w.file(p, nil)
	}
}

// file reads a single file, if a format claims it.
func (w *walk) file(p string, e fs.DirEntry) {
	if !isDocument(p) {
		if w.t.only != "" {
			w.unknown(p)
		}
		return
	}
	if e != nil && !e.Type().IsRegular() {
		w.unreadable(p, &safefs.Error{Code: "not-a-file", Message: "it is a " + safefs.ModeWord(e.Type()) + ", not a file", Fix: "put a regular file there"})
		return
	}
	seen := lookAt(w.t.root, p, e) // before reading: a change meanwhile then shows
	if !w.takeOver(p, seen) {
		w.found[p] = w.readFile(p)
		w.found[p].look = seen.dependingOn(w.found[p].also)
	}
	w.remark(p)
}

func (w *walk) readFile(p string) *loadedUnit {
	head, err := w.t.head(p)
	if err != nil {
		return &loadedUnit{problems: []capability.Problem{safefs.Problem(err, capability.Grave, w.origin(p))}}
	}
	for i := range w.t.formats {
		f := &w.t.formats[i]
		if f.Reads(w.t.root, p, head) {
			return loadedFrom(w.t.readUnitLocked(w.ctx, p, f.Name), f.Keep)
		}
	}
	return &loadedUnit{problems: w.corrupt(p)}
}

// corrupt reports a file that has the name of a list Ken reads but that no
// format recognises, if it cannot be parsed at all. A file that parses and
// contains something else belongs to another program.
func (w *walk) corrupt(p string) []capability.Problem {
	if !slices.ContainsFunc([]string{"registry", "channels", "extensions", "presets"}, func(name string) bool { return format.IsListFile(p, name) }) {
		return nil
	}
	data, _, err := w.t.root.Read(p, format.ListLimit)
	if err != nil {
		return []capability.Problem{safefs.Problem(err, capability.Grave, w.origin(p))}
	}
	doc, err := yamldoc.ParseValue(data, format.ListLimits())
	problem := capability.Problem{
		Code: "bad-list", Origin: w.origin(p), Message: path.Base(p) + " holds no list, so nothing of it is used",
		Fix: "write one entry per line, each beginning with a dash; or rename it, where it is another program's",
	}
	if err != nil {
		problem.Message = fmt.Sprintf("%s cannot be read, so nothing of it is used: %v", path.Base(p), err)
		problem.Fix = "fix it; or rename it, where it is another program's"
	} else if _, text := doc.Any.(string); !text {
		return nil
	}
	return []capability.Problem{problem}
}

func (w *walk) unknown(p string) {
	w.problem(p, "unknown-format", "no format that Ken knows", "see docs/sources.md for what can be read")
}

func (w *walk) unreadable(p string, err error) {
	w.found[p] = &loadedUnit{problems: []capability.Problem{safefs.Problem(err, capability.Grave, w.origin(p))}}
}

func (w *walk) origin(p string) capability.Origin {
	return capability.Origin{Source: w.t.cfg.Name, Location: capability.Local, Path: w.t.root.Display(p)}
}

func (w *walk) problem(p, code, message, fix string) {
	key := p + "\x00" + code // beside the units, never one of them
	w.found[key] = &loadedUnit{problems: []capability.Problem{{Code: code, Origin: w.origin(p), Message: message, Fix: fix}}}
}

// head reads the beginning of a file.
func (t *Tree) head(p string) ([]byte, error) {
	f, err := t.root.OpenFile(p)
	if err != nil {
		return nil, safefs.Explain(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, safefs.Explain(err)
	}
	if err := t.root.Admit(info, safefs.CatalogLimit); err != nil {
		return nil, err
	}
	buf := make([]byte, headSize)
	n, err := io.ReadFull(f, buf)
	if err != nil && n == 0 && err != io.EOF {
		return nil, safefs.Explain(err)
	}
	return buf[:n], nil
}

// readUnitLocked reads one unit by its format. A panic in a parser costs the
// unit, not the program: parsers are the part that strangers' files reach.
func (t *Tree) readUnitLocked(ctx context.Context, p, name string) (u *format.Unit) {
	u = &format.Unit{Context: ctx, Root: t.root, Path: p, Format: name, Source: t.cfg.Name, Trust: t.cfg.Trust}
	u.Parse = func(name, p string, data []byte) *format.Unit {
		part := &format.Unit{Context: ctx, Root: t.root, Path: p, Format: name, Source: t.cfg.Name, Trust: t.cfg.Trust, Data: data}
		if f := t.formatNamed(name); f != nil {
			t.cfg.Cache.Parse(*f, part)
		}
		return part
	}
	i := slices.IndexFunc(t.formats, func(f format.Format) bool { return f.Name == name })
	if i < 0 {
		return u
	}
	f := t.formats[i]
	defer func() {
		if r := recover(); r != nil {
			u.Capabilities, u.Details = nil, nil
			u.Fault("parser-panic", p, 0, fmt.Sprintf("reading it as %s broke: %v", name, r), "please report this file")
		}
	}()
	if len(f.Markers) == 0 || !t.isFolder(p) {
		data, _, err := t.root.Read(p, f.Limit)
		if err != nil {
			u.Problems = append(u.Problems, safefs.Problem(err, capability.Grave, u.Origin(p, 0)))
			return u
		}
		u.Data = data
	}
	t.cfg.Cache.Parse(f, u)
	return u
}

func (t *Tree) isFolder(p string) bool {
	info, err := fs.Stat(t.root.FS, p)
	return err == nil && info.IsDir()
}

// loadedFrom keeps of a unit what the catalog needs.
func loadedFrom(u *format.Unit, keep bool) *loadedUnit {
	h := &loadedUnit{
		format: u.Format, capabilities: u.Capabilities,
		presets: u.Presets, documents: u.Documents, problems: u.Problems,
		also: u.Also, replaces: u.Replaces,
	}
	if keep {
		h.details = make(map[capability.ID]capability.Detail, len(u.Capabilities))
		for i, c := range u.Capabilities {
			h.details[c.ID] = u.Details[i]
		}
	}
	return h
}

// ownerLocked finds the unit that a path belongs to: itself, or the nearest
// folder above that is one.
func (t *Tree) ownerLocked(p string) (string, bool) {
	for {
		if h, ok := t.units[p]; ok && h.format != "" {
			return p, true
		}
		if p == "." || p == "/" || p == ".." || strings.HasPrefix(p, "../") {
			return "", false
		}
		p = path.Dir(p)
	}
}
