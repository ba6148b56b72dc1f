package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrTraversal says that a path climbs, in the seed's words.
var ErrTraversal = errors.New("Path traversal detected")

const longestPath = 4096

// CleanPath returns the one spelling of a path beneath a root: relative, with
// slashes, without "." or "..". It refuses what could mean another file than
// it seems to; a name such as "a..b" is an ordinary one.
func CleanPath(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("the path is empty")
	case len(name) > longestPath:
		return "", fmt.Errorf("the path has more than %d bytes", longestPath)
	case !utf8.ValidString(name):
		return "", errors.New("the path is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", errors.New("the path contains a control character")
	case strings.Contains(name, `\`):
		return "", errors.New("the path contains a backslash; write / between names")
	case path.IsAbs(name) || !filepath.IsLocal(name) && !climbs(name):
		return "", errors.New("the path is absolute")
	case climbs(name):
		return "", ErrTraversal
	}
	return path.Clean(name), nil
}

func climbs(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// A LinkError says that a path goes through a symbolic link. Links are not
// followed, so that the file which is named is the file that is meant: at the
// time of the decision, and at the time of the effect.
type LinkError struct {
	Name   string // the link, below the root
	Target string // what it says; it came from outside
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link, and Ken does not follow links", e.Name)
}

// OpenDir opens a folder beneath a root, name by name, and follows no link on
// the way. With a mode other than zero it makes what is missing. The name must
// be clean; the root stays the caller's, and what it returns becomes so.
func OpenDir(root *os.Root, name string, perm fs.FileMode) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	if name == "." {
		return at, nil
	}
	done := ""
	for part := range strings.SplitSeq(name, "/") {
		done = path.Join(done, part)
		next, err := step(at, part, perm)
		at.Close()
		if link, ok := errors.AsType[*LinkError](err); ok {
			link.Name = done
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// step opens one folder. That what was looked at is what was opened makes a
// link that is put there in between harmless.
func step(at *os.Root, name string, perm fs.FileMode) (*os.Root, error) {
	info, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && perm != 0 {
		if err := at.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = at.Lstat(name)
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := at.Readlink(name)
		return nil, &LinkError{Name: name, Target: target}
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a folder")}
	}
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if got, err := next.Stat("."); err != nil || !os.SameFile(info, got) {
		next.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("replaced in the meantime; try again")}
	}
	return next, nil
}

// Resolved follows the links of a path, as far as it is there.
func Resolved(path string) string {
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest)
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}
