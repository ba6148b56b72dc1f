package executor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/internal/run/sandbox"
)

// DefaultPath is where programs are looked for by default.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Programs finds programs by name. Only absolute folders are searched: never
// the work directory, never "." and never a folder that anybody may write to.
type Programs struct {
	dirs    []string
	within  sandbox.Requirement // of the sandbox that programs run in; empty: not checked
	digests digests
}

// A Program is a file to run, and what identifies its bytes.
type Program struct {
	Path   string // absolute, clean
	SHA256 string

	head string // its first bytes
}

// NewPrograms makes a Programs that searches a list of folders as PATH holds
// it; empty means [DefaultPath]. Folders below one of avoid, which tools may
// write to, are left out.
func NewPrograms(list string, avoid ...string) *Programs {
	if list == "" {
		list = DefaultPath
	}
	p := &Programs{}
	for _, dir := range filepath.SplitList(list) {
		if filepath.IsAbs(dir) && !belowAny(filepath.Clean(dir), avoid) {
			p.dirs = append(p.dirs, filepath.Clean(dir))
		}
	}
	return p
}

// Within returns p for programs that run in a sandbox with this requirement.
// Those that cannot be reached from inside are passed over for the next of the
// same name. It must be called before p is used.
func (p *Programs) Within(require sandbox.Requirement) *Programs {
	p.within = cmp.Or(require, sandbox.RequireLandlock)
	return p
}

func belowAny(dir string, avoid []string) bool {
	for _, a := range avoid {
		if rel, err := filepath.Rel(a, dir); a != "" && err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// List returns the folders as PATH holds them.
func (p *Programs) List() string { return strings.Join(p.dirs, string(os.PathListSeparator)) }

// Find returns the program of a name, or of an absolute path to one. Its hash is
// computed once, and again when the file has changed.
func (p *Programs) Find(name string) (Program, error) {
	var found Program
	err := p.search(name, func(path string) (err error) {
		found, err = p.look(path)
		return err
	})
	return found, err
}

// Check returns why [Programs.Find] would not find a program, or nil. It reads no
// file, and finds out which sandbox there is only if that matters.
func (p *Programs) Check(name string) error {
	open := p.search(name, func(path string) error {
		if _, err := executable(path); err != nil {
			return err
		}
		return sandbox.OpenToAll(path)
	})
	if open == nil {
		return nil
	}
	return p.search(name, func(path string) error {
		_, err := p.usable(path)
		return err
	})
}

// search tries the paths that a name may mean until one is taken.
func (p *Programs) search(name string, try func(path string) error) error {
	if filepath.IsAbs(name) {
		if filepath.Clean(name) != name {
			return errors.New("the program's path contains . or ..; write it without")
		}
		return try(name)
	}
	if name == "" || strings.ContainsAny(name, `/\`) || strings.ContainsRune(name, 0) || name == "." || name == ".." {
		return errors.New("the program is a relative path; use its plain name or its absolute path")
	}
	var worst error
	for _, dir := range p.dirs {
		err := try(filepath.Join(dir, name))
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			worst = err
		}
	}
	if worst != nil {
		return worst
	}
	return fmt.Errorf("program %s is not installed: %w", name, fs.ErrNotExist)
}

// Has reports whether there is an executable file of a plain name. It costs a
// look into each folder; [Programs.Find] looks closer.
func (p *Programs) Has(name string) bool {
	if name == "" || strings.ContainsAny(name, `/\`) {
		return false
	}
	return slices.ContainsFunc(p.dirs, func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

// usable returns an error if a file cannot be run as a program in the sandbox.
func (p *Programs) usable(path string) (fs.FileInfo, error) {
	info, err := executable(path)
	if err != nil || p.within == "" {
		return info, err
	}
	if err := sandbox.Reachable(path, p.within); err != nil {
		return nil, fmt.Errorf("program %s: %w", filepath.Base(path), err)
	}
	return info, nil
}

// executable returns an error if a file is no program that may be run.
func executable(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("program %s: %w", filepath.Base(path), reason(err))
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return nil, fmt.Errorf("program %s: not an executable file", filepath.Base(path))
	case info.Mode()&0o002 != 0:
		return nil, fmt.Errorf("program %s: any user can write to it; remove that permission", filepath.Base(path))
	}
	if dir, err := os.Stat(filepath.Dir(path)); err != nil || dir.Mode()&0o002 != 0 {
		return nil, fmt.Errorf("program %s: any user can write to its folder; remove that permission", filepath.Base(path))
	}
	return info, nil
}

func (p *Programs) look(path string) (Program, error) {
	info, err := p.usable(path)
	if err != nil {
		return Program{}, err
	}
	found, ok := p.digests.as(path, info)
	if !ok {
		return Program{}, fmt.Errorf("program %s: cannot be read", filepath.Base(path))
	}
	return Program{Path: path, SHA256: found.sha256, head: found.head}, nil
}

// reason takes the path off an error: a person's folders are private.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
