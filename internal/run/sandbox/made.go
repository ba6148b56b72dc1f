package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// absent lists the protected and watched names that are not there. A mount needs something
// to lie on, and making that would show on the host and stay when we are
// killed; so a tool can make these, and [Outcome.Made] tells which it made.
func (s Spec) absent() []string {
	return slices.DeleteFunc(slices.Concat(s.Protect, s.Watch), func(name string) bool { return !errors.Is(s.look(name), fs.ErrNotExist) })
}

// made lists the names that were absent and are no longer, or of which that
// cannot be told any more.
func (s Spec) made(absent []string) []string {
	return slices.DeleteFunc(absent, func(name string) bool { return errors.Is(s.look(name), fs.ErrNotExist) })
}

// look looks for a protected name.
func (s Spec) look(name string) error {
	return s.at(name, func(root *os.Root, rel string) error {
		_, err := root.Lstat(rel)
		return err
	})
}

// at does something about a protected name, in the folder that it is of: the
// work directory, or for an absolute one a path that is granted.
func (s Spec) at(name string, do func(root *os.Root, rel string) error) error {
	if !filepath.IsAbs(name) {
		return do(s.Work, name)
	}
	for _, grant := range slices.Concat(s.Write, s.Read) {
		rel, err := filepath.Rel(grant, name)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		root, err := os.OpenRoot(grant)
		if err != nil {
			return err
		}
		defer root.Close()
		return do(root, rel)
	}
	return fmt.Errorf("not below a granted path: %w", fs.ErrNotExist) // filled has checked it
}
