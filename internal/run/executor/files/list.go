package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/executor"
)

const listSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"Folder, relative to the workspace; the workspace itself when left out"},` +
	`"recursive":{"type":"boolean","description":"List what is in its folders too"},` +
	`"limit":{"type":"integer","minimum":1,"description":"Most entries"},` +
	`"after":{"type":"string","description":"Go on after this entry: next of an earlier result"}},` +
	`"additionalProperties":false}`

type listInput struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
	Limit     *int   `json:"limit"`
	After     string `json:"after"`
}

// A listing is what is told about a list.
type listing struct {
	Path    string   `json:"path"`
	Entries int      `json:"entries"`
	Next    string   `json:"next,omitempty"`
	Ignored int      `json:"ignored,omitempty"` // hidden by .kenignore
	Own     int      `json:"own,omitempty"`     // Ken's own, left out
	Notes   []string `json:"notes,omitempty"`
}

const (
	mostEntries  = 2000
	mostVisited  = 200_000
	mostInFolder = 50_000
	deepestWalk  = 64
)

func (e *Executor) listFacts(call capability.Call) ([]executor.Path, bool, error) {
	_, p, err := e.listInput(call)
	return []executor.Path{{Name: p.shown}}, false, err
}

func (e *Executor) listInput(call capability.Call) (listInput, place, error) {
	in, err := executor.Decode[listInput](call)
	if err != nil {
		return in, place{}, err
	}
	if in.Limit != nil && *in.Limit < 1 {
		return in, place{}, executor.BadArguments(call, errors.New("limit must be at least 1"), "")
	}
	p, err := e.folder("list", in.Path)
	return in, p, err
}

func (e *Executor) folder(op, name string) (place, error) {
	if name == "" {
		name = "."
	}
	p, err := e.locate(op, name, false)
	if err == nil {
		err = p.admit(op, true)
	}
	return p, err
}

func (e *Executor) list(ctx context.Context, call capability.Call) (capability.Result, error) {
	in, p, err := e.listInput(call)
	if err != nil {
		return capability.Result{}, err
	}
	most := mostEntries
	if in.Limit != nil {
		most = min(most, *in.Limit)
	}
	about := listing{Path: p.shown}
	var text strings.Builder
	chars, last := 0, ""
	w := &walk{ctx: ctx, scope: p.scope, recursive: in.Recursive, after: in.After, marks: e.marks()}
	err = w.dir(e, p, func(_ *os.Root, rel string, d fs.DirEntry) error {
		line := entryLine(w.dirRoot, p.scope.shown(rel), d)
		n := utf8.RuneCountInString(line) + 1
		if about.Entries == most || about.Entries > 0 && chars+n > e.cfg.MaxChars {
			about.Next = last
			return errEnough
		}
		about.Entries++
		chars, last = chars+n, rel
		text.WriteString(line + "\n")
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return trouble("list", p, err)
	}
	about.Ignored, about.Own, about.Notes = w.ignored, w.own, w.notes
	return answer(about, text.String(), about.Next != "" || w.cut), nil
}

// entryLine shows a name, with what it is at the end: a slash for a folder, an
// arrow for a link.
func entryLine(dir *os.Root, shown string, d fs.DirEntry) string {
	name := showName(shown)
	switch mode := d.Type(); {
	case mode.IsDir():
		return name + "/"
	case mode&fs.ModeSymlink != 0:
		target, err := dir.Readlink(d.Name())
		if err != nil {
			return name + " -> ?"
		}
		return name + " -> " + showName(target)
	case !mode.IsRegular():
		return name + " (" + kindOf(mode) + ")"
	}
	return name
}

// showName quotes a name that would not be one line of plain text.
func showName(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return name
	}
	return strconv.Quote(name)
}

var errEnough = errors.New("enough")

// A walk goes through folders in the order of their names, by handle and
// without following links.
type walk struct {
	ctx       context.Context
	scope     *scope
	recursive bool
	after     string // entries up to this one are passed over
	rules     *Ignore
	marks     []mark

	dirRoot *os.Root // the folder of the entry at hand
	visited int
	ignored int
	own     int
	cut     bool
	notes   []string
}

// dir walks a folder. visit gets the folder's handle, the entry's name below
// the scope, and the entry.
func (w *walk) dir(e *Executor, p place, visit func(*os.Root, string, fs.DirEntry) error) error {
	var err error
	if w.rules, err = w.scope.ignored(); err != nil {
		return err
	}
	root, in, err := e.enter(p, p.rel, 0)
	if err != nil {
		return err
	}
	defer root.Close()
	if in == closed {
		return isOwn("open", p)
	}
	return w.folder(root, p.rel, in, 0, visit)
}

func (w *walk) note(format string, args ...any) {
	w.cut = true
	if len(w.notes) < 20 {
		w.notes = append(w.notes, fmt.Sprintf(format, args...))
	}
}

// ground is that of an entry of a folder.
func (w *walk) ground(in ground, name string, d fs.DirEntry) ground {
	if len(w.marks) == 0 {
		return in
	}
	var info fs.FileInfo
	if d.IsDir() { // a file goes by its name: one that has a second is not opened
		if is, err := d.Info(); err == nil {
			info = is
		}
	}
	return step(w.marks, in, path.Join(w.scope.real, name), info)
}

// leave notes that an entry is Ken's own.
func (w *walk) leave(name string) {
	if w.own++; len(w.notes) < 20 {
		w.notes = append(w.notes, showName(w.scope.shown(name))+" is Ken's own and left out")
	}
}

func (w *walk) folder(dir *os.Root, rel string, in ground, depth int, visit func(*os.Root, string, fs.DirEntry) error) error {
	entries, err := w.entries(dir, rel)
	if err != nil {
		if depth == 0 {
			return err
		}
		w.note("%s cannot be listed", showName(w.scope.shown(rel)))
		return nil
	}
	for _, d := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if w.visited++; w.visited > mostVisited {
			w.note("more than %d entries; look into one folder", mostVisited)
			return errEnough
		}
		name := path.Join(rel, d.Name())
		if _, hidden := w.rules.Match(name, d.IsDir()); hidden {
			w.ignored++
			continue
		}
		at := w.ground(in, name, d)
		if at == closed {
			w.leave(name)
			continue
		}
		if order(name, w.after) > 0 {
			w.dirRoot = dir
			if err := visit(dir, name, d); err != nil {
				return err
			}
		}
		if !d.IsDir() || !w.recursive || w.after != "" && order(name, w.after) < 0 && !strings.HasPrefix(w.after+"/", name+"/") {
			continue
		}
		if err := w.inner(dir, name, d, at, depth, visit); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) inner(dir *os.Root, name string, d fs.DirEntry, in ground, depth int, visit func(*os.Root, string, fs.DirEntry) error) error {
	if depth == deepestWalk {
		w.note("%s is nested too deep", showName(w.scope.shown(name)))
		return nil
	}
	sub, err := executor.OpenDir(dir, d.Name(), 0)
	if err != nil {
		w.note("%s cannot be opened", showName(w.scope.shown(name)))
		return nil
	}
	defer sub.Close()
	return w.folder(sub, name, in, depth+1, visit)
}

// entries reads a folder in the order of its names.
func (w *walk) entries(dir *os.Root, rel string) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(mostInFolder + 1)
	if err != nil && len(entries) == 0 && err.Error() != "EOF" {
		return nil, err
	}
	if len(entries) > mostInFolder {
		entries = entries[:mostInFolder]
		w.note("%s has more than %d entries; the others are left out", showName(w.scope.shown(rel)), mostInFolder)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// order compares names as a walk meets them: a folder before what is in it.
func order(a, b string) int {
	if b == "" {
		return 1
	}
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}
