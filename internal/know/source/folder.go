package source

import (
	"io/fs"
	"path"
	"path/filepath"
)

// beneath returns access to one folder of the root and nothing outside it: a
// link in the folder that leads to a neighbour is refused like one that leads
// out of the root. The caller closes it.
func (r *root) beneath(folder string) (*root, error) {
	if r.dir == nil {
		sub, err := fs.Sub(r.fsys, path.Clean(folder))
		if err != nil {
			return nil, explainOpen(err)
		}
		return &root{name: r.display(folder), fsys: sub, strict: r.strict}, nil
	}
	sub, err := r.dir.OpenRoot(filepath.FromSlash(path.Clean(folder)))
	if err != nil {
		return nil, explainOpen(err)
	}
	return &root{name: r.display(folder), dir: sub, fsys: sub.FS(), strict: r.strict}, nil
}

// readBeneath reads a file that a manifest in the folder named.
func (r *root) readBeneath(folder, given string, limit int64) ([]byte, error) {
	inside, err := within(".", given)
	if err != nil {
		return nil, err
	}
	sub, err := r.beneath(folder)
	if err != nil {
		return nil, err
	}
	defer sub.close()
	data, _, err := sub.read(inside, limit)
	return data, err
}

// folderName returns the name of the folder that a path of the tree is, or lies
// directly in.
func (r *root) folderName(p string) string {
	if p != "." {
		return path.Base(p)
	}
	if abs, err := filepath.Abs(r.name); err == nil && r.dir != nil {
		return filepath.Base(abs)
	}
	return path.Base(filepath.ToSlash(r.name))
}
