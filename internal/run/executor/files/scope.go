package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"ken/capability"
	"ken/internal/run/executor"
)

// A scope is a folder, held open, and whether it may be changed.
type scope struct {
	dir    string // absolute, clean, with slashes: for names only
	prefix string // what stands before a name that is shown
	write  bool
	root   *os.Root
	real   string // dir with its links resolved, as it was opened
	above  ground // that it lies on

	mu     sync.Mutex
	ignore *Ignore
	seen   fs.FileInfo // of the .kenignore that ignore was read from; nil for none
	read   bool
}

func openScope(dir, workspace string, write bool) (*scope, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the folder %q is not absolute", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &scope{dir: filepath.ToSlash(filepath.Clean(dir)), write: write, root: root, real: filepath.ToSlash(executor.Resolved(dir))}
	base := filepath.ToSlash(filepath.Clean(workspace))
	switch {
	case s.dir == base:
	case strings.HasPrefix(s.dir, strings.TrimSuffix(base, "/")+"/"):
		s.prefix = strings.TrimPrefix(s.dir[len(base):], "/")
	default:
		s.prefix = s.dir
	}
	return s, nil
}

// shown returns the name by which rules and people know a file: relative to the
// workspace, or absolute.
func (s *scope) shown(rel string) string { return path.Join(s.prefix, rel) }

// A place is where a name leads.
type place struct {
	scope *scope
	rel   string // clean, below the scope's root
	shown string
}

// locate finds the scope of a name. It looks at the name only; what is there
// is found through the scope's handle.
func (e *Executor) locate(op, name string, write bool) (place, error) {
	base := filepath.ToSlash(filepath.Clean(e.cfg.Workspace))
	given := name
	if given == "~" || strings.HasPrefix(given, "~/") {
		// Rules take it for the home directory, and a shell would. Here it would
		// be a folder of the workspace.
		return place{}, &capability.Error{
			Kind: capability.Invalid, Op: op, Target: "a file", Err: errors.New("~ is not expanded to the home directory here"),
			Fix: "write the path in full: relative to the workspace, or from /",
		}
	}
	var abs string
	if path.IsAbs(given) || filepath.IsAbs(given) {
		given = strings.TrimLeft(filepath.ToSlash(strings.TrimPrefix(given, filepath.VolumeName(given))), "/")
		if given == "" {
			given = "."
		}
		clean, err := executor.CleanPath(given)
		if err != nil {
			return place{}, badPath(op, err)
		}
		abs = path.Join(filepath.ToSlash(filepath.VolumeName(name))+"/", clean)
	} else {
		clean, err := executor.CleanPath(given)
		if err != nil {
			return place{}, badPath(op, err)
		}
		abs = path.Join(base, clean)
	}
	for _, s := range e.scopes {
		rel, ok := below(s.dir, abs)
		if !ok {
			continue
		}
		p := place{scope: s, rel: rel, shown: s.shown(rel)}
		if p.shown == "" {
			p.shown = "."
		}
		if write && !s.write {
			return place{}, denied(op, p.shown, "files.write", errors.New("folder is read-only"), "write into a folder that is open for writing")
		}
		return p, e.notOwn(op, p, write)
	}
	return place{}, outside(op, write)
}

// outside refuses what lies in no scope, and names the setting that has them.
func outside(op string, write bool) error {
	knob := "policy.readRoots"
	if write {
		knob = "policy.writeRoots"
	}
	return denied(op, "a file", knob, errors.New("outside the workspace"), "name a file of the workspace, relative to it, or have a person add the folder to "+knob)
}

func badPath(op string, err error) error {
	if errors.Is(err, executor.ErrTraversal) {
		return denied(op, "a file", "files.scope", err, "name the file without ..")
	}
	return &capability.Error{Kind: capability.Invalid, Op: op, Target: "a file", Err: err}
}

func below(dir, abs string) (rel string, ok bool) {
	if abs == dir {
		return ".", true
	}
	rest, ok := strings.CutPrefix(abs, strings.TrimSuffix(dir, "/")+"/")
	return rest, ok
}

// admit refuses a place that .kenignore hides.
func (p place) admit(op string, dir bool) error {
	ig, err := p.scope.ignored()
	if err != nil {
		return denied(op, p.shown, p.scope.shown(ignoreName), err, "fix that file; until then no file can be used")
	}
	if line, hidden := ig.Match(p.rel, dir); hidden {
		return denied(op, p.shown, fmt.Sprintf("%s:%d", p.scope.shown(ignoreName), line), errors.New("hidden"), "continue without it; a person can remove the line")
	}
	return nil
}

const (
	ignoreName = ".kenignore"
	ignoreMost = 64 << 10
)

// ignored returns the rules that hold now. A file that cannot be read is an
// error, so that nothing it hides comes into sight.
func (s *scope) ignored() (*Ignore, error) {
	info, err := s.root.Lstat(ignoreName)
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		s.ignore, s.seen, s.read = &Ignore{}, nil, true
		return s.ignore, nil
	}
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	if s.read && s.seen != nil && unchanged(s.seen, info) {
		return s.ignore, nil
	}
	f, info, err := openRegular(s.root, ignoreName, true)
	if err != nil {
		return nil, errors.New("not a readable file")
	}
	defer f.Close()
	text, err := readAll(f, ignoreMost)
	if err != nil {
		return nil, err
	}
	ig, err := ParseIgnore(string(text))
	if err != nil {
		return nil, err
	}
	s.ignore, s.seen, s.read = ig, info, true
	return ig, nil
}

// unchanged reports whether a file is, to all appearance, as it was.
func unchanged(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime())
}

// parent opens the folder that holds a place; with make, missing folders are
// made.
func (e *Executor) parent(p place, make bool) (dir *os.Root, base string, in ground, err error) {
	if p.rel == "." {
		return nil, "", common, errors.New("is a folder")
	}
	perm := fs.FileMode(0)
	if make {
		perm = 0o777
	}
	dir, in, err = e.enter(p, path.Dir(p.rel), perm)
	return dir, path.Base(p.rel), in, err
}

// open opens a place for reading.
func (e *Executor) open(p place) (*os.File, fs.FileInfo, error) {
	dir, base, in, err := e.parent(p, false)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	f, info, err := openRegular(dir, base, e.cfg.HardLinks)
	if err == nil && e.stands(p, in, info) == closed {
		f.Close()
		return nil, nil, isOwn("open", p)
	}
	if link, ok := errors.AsType[*executor.LinkError](err); ok {
		link.Name = p.rel
	}
	return f, info, err
}

// openRegular opens an ordinary file in a folder. Nothing else is ever opened:
// a pipe would block, a device may do anything.
func openRegular(dir *os.Root, base string, links bool) (*os.File, fs.FileInfo, error) {
	was, err := dir.Lstat(base)
	if err != nil {
		return nil, nil, err
	}
	if err := ordinary(dir, base, was, links); err != nil {
		return nil, nil, err
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(was, info) {
		err = errors.New("replaced in the meantime; try again")
	}
	if err == nil {
		err = ordinary(dir, base, info, links)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func ordinary(dir *os.Root, base string, info fs.FileInfo, links bool) error {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		target, _ := dir.Readlink(base)
		return &executor.LinkError{Name: base, Target: target}
	case mode.IsDir():
		return errors.New("is a folder; list_files shows what is in it")
	case !mode.IsRegular():
		return fmt.Errorf("is %s, not a file", kindOf(mode))
	case !links && names(info) > 1:
		return fmt.Errorf("has %d hard links, and one may be outside the workspace; copy the file first", names(info))
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
}
