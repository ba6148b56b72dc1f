package source

import (
	"crypto/sha256"
	"fmt"
	"io/fs"

	"ken/internal/know/source/format"
	"ken/internal/know/source/parsecache"
)

// takeParsed takes what the files of the program were parsed to, and reports
// whether that was there and of these very files.
func (w *walk) takeParsed() bool {
	t := w.t
	if t.cfg.parsed == "" {
		return false
	}
	id, err := filesID(t.root.FS)
	u := &format.Unit{Context: w.ctx, Root: t.root, Path: ".", Format: parsecache.WholeTree, Source: t.cfg.Name, Trust: t.cfg.Trust}
	if err != nil || !parsecache.Unpack([]byte(t.cfg.parsed), id, u) {
		return false
	}
	w.found[u.Path] = loadedFrom(u, true)
	return true
}

// filesID covers the names and bytes of all files, so that what others were
// parsed to is never taken for these. That the parser is still the same is for
// a test to show: both are parts of one program.
func filesID(files fs.FS) (id parsecache.Key, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "tree\n%d\n", parsecache.Version)
	err = fs.WalkDir(files, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, p)
		fmt.Fprintf(h, "%q %d\n", p, len(data))
		h.Write(data)
		return err
	})
	h.Sum(id[:0])
	return id, err
}
