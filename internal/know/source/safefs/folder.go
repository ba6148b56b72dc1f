package safefs

import (
	"io/fs"
	"path"
	"path/filepath"
)

// Beneath returns access to one folder of the root and nothing outside it: a
// link in the folder that leads to a neighbour is refused like one that leads
// out of the root. The caller closes it.
func (r *Root) Beneath(folder string) (*Root, error) {
	if r.dir == nil {
		sub, err := fs.Sub(r.FS, path.Clean(folder))
		if err != nil {
			return nil, Explain(err)
		}
		return &Root{Name: r.Display(folder), FS: sub, strict: r.strict}, nil
	}
	sub, err := r.dir.OpenRoot(filepath.FromSlash(path.Clean(folder)))
	if err != nil {
		return nil, Explain(err)
	}
	return &Root{Name: r.Display(folder), dir: sub, FS: sub.FS(), strict: r.strict}, nil
}

// ReadBeneath reads a file that a manifest in the folder named.
func (r *Root) ReadBeneath(folder, given string, limit int64) ([]byte, error) {
	inside, err := Join(".", given)
	if err != nil {
		return nil, err
	}
	sub, err := r.Beneath(folder)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	data, _, err := sub.Read(inside, limit)
	return data, err
}

// FolderName returns the name of the folder that a path of the tree is, or lies
// directly in.
func (r *Root) FolderName(p string) string {
	if p != "." {
		return path.Base(p)
	}
	if abs, err := filepath.Abs(r.Name); err == nil && r.dir != nil {
		return filepath.Base(abs)
	}
	return path.Base(filepath.ToSlash(r.Name))
}
