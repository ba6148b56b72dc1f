package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/run/executor"
)

// A ground is what the tools may do at a place, by whose it is.
type ground uint8

const (
	common   ground = iota // what the scope says
	readable               // Ken's own that may be read
	closed                 // Ken's own, and for no tool
)

// A mark is a file or folder at which a ground begins.
type mark struct {
	real   string // absolute, with slashes, links resolved as far as it was there
	base   string // its last part
	ground ground
	info   fs.FileInfo // nil: it is not there now
	at     string      // as it was configured
}

func newMarks(own, open []string) []mark {
	var out []mark
	add := func(list []string, g ground) {
		for _, name := range list {
			real := filepath.ToSlash(executor.Resolved(name))
			out = append(out, mark{real: real, base: path.Base(real), ground: g, at: name})
		}
	}
	add(open, readable)
	add(own, closed) // after the others: of two at one place it is this one that counts
	return out
}

// marks returns those of this moment: a folder may have been made, or moved, since
// the executor was.
func (e *Executor) marks() []mark {
	out := make([]mark, len(e.own))
	for i, m := range e.own {
		out[i] = m
		if info, err := os.Stat(m.at); err == nil {
			out[i].info = info
		}
	}
	return out
}

// step returns the ground of a file or folder in a folder of the given ground. It
// is known by what it is, whatever name leads there (upper and lower case, a
// mount, a second name), and where it is not there yet by its name. The
// innermost mark counts. info may be nil.
func step(marks []mark, in ground, real string, info fs.FileInfo) ground {
	base := path.Base(real)
	for _, m := range marks {
		if strings.EqualFold(m.base, base) && strings.EqualFold(m.real, real) || info != nil && m.info != nil && os.SameFile(m.info, info) {
			in = m.ground
		}
	}
	return in
}

// groundAbove is the ground that a scope lies on.
func groundAbove(marks []mark, real string) ground {
	var above []string
	for dir := real; ; dir = path.Dir(dir) {
		above = append(above, dir)
		if dir == path.Dir(dir) {
			break
		}
	}
	g := common
	for i := len(above) - 1; i >= 0; i-- {
		info, err := os.Stat(filepath.FromSlash(above[i]))
		if err != nil {
			info = nil
		}
		g = step(marks, g, above[i], info)
	}
	return g
}

// ground is that of a name below a scope. A link is not followed: what is behind
// it is opened by no tool.
func (s *scope) ground(marks []mark, rel string) ground {
	g := s.above
	if rel == "." || len(marks) == 0 {
		return g
	}
	name := ""
	for part := range strings.SplitSeq(rel, "/") {
		name = path.Join(name, part)
		info, err := s.root.Lstat(name)
		if err != nil {
			info = nil
		}
		g = step(marks, g, path.Join(s.real, name), info)
	}
	return g
}

// notOwn refuses what is Ken's.
func (e *Executor) notOwn(op string, p place, write bool) error {
	switch g := p.scope.ground(e.marks(), p.rel); {
	case g == closed:
		return isOwn(op, p)
	case g == readable && write:
		return ownError(op, p, "the file belongs to Ken, and tools may only read it", "write the content to another file, and ask a person to move it there")
	}
	return nil
}

func isOwn(op string, p place) *capability.Error {
	return ownError(op, p, "the file is in Ken's own folder, which holds its keys, records and rules", "continue without it; a person can change it with ken or by hand")
}

func ownError(op string, p place, why, fix string) *capability.Error {
	return &capability.Error{Kind: capability.Denied, Op: op, Target: p.shown, Rule: "files.own", Err: errors.New(why), Fix: fix}
}

// enter opens a folder of a scope, as [executor.OpenDir] does, and says on which
// ground it lies: it goes by what was opened, so nothing can be put there in
// between. A folder that may be read can lie in one that is closed.
func (e *Executor) enter(p place, rel string, perm fs.FileMode) (*os.Root, ground, error) {
	g := p.scope.above
	marks := e.marks()
	at, err := p.scope.root.OpenRoot(".")
	if err != nil || rel == "." {
		return at, g, err
	}
	name := ""
	for part := range strings.SplitSeq(rel, "/") {
		name = path.Join(name, part)
		next, err := executor.OpenDir(at, part, perm)
		at.Close()
		if link, ok := errors.AsType[*executor.LinkError](err); ok {
			link.Name = name
		}
		if err != nil {
			return nil, g, err
		}
		at = next
		info, err := at.Stat(".")
		if err != nil {
			at.Close()
			return nil, g, err
		}
		g = step(marks, g, path.Join(p.scope.real, name), info)
	}
	return at, g, nil
}

// stands returns the ground of a file in a folder that lies on one.
func (e *Executor) stands(p place, in ground, info fs.FileInfo) ground {
	return step(e.marks(), in, path.Join(p.scope.real, p.rel), info)
}
