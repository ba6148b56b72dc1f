// Package packagefiles identifies all files of an extension package, so that a
// person's review holds for exactly these bytes.
package packagefiles

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// Limits of one package. It is read whole whenever it is loaded and before each
// call of its own programs.
const (
	MostFiles = 5000
	MostBytes = 64 << 20
)

// Skipped reports whether a name at the top of a package is no part of it: what its
// programs write, and what git keeps.
func Skipped(name string) bool { return name == "work" || name == ".git" }

// Digest returns a digest of the names, modes and bytes of all files. Links and
// other special files are an error: what they lead to is not part of the package.
func Digest(files fs.FS) (string, error) {
	h := sha256.New()
	count, size := 0, int64(0)
	err := fs.WalkDir(files, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p != "." && path.Dir(p) == "." && Skipped(p) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.IsDir() {
			return nil
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file; a package has no links", p)
		}
		if count++; count > MostFiles {
			return fmt.Errorf("more than %d files", MostFiles)
		}
		return add(h, files, p, &size)
	})
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func add(h io.Writer, files fs.FS, p string, size *int64) error {
	f, err := files.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", p)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, MostBytes-*size+1))
	if err != nil {
		return err
	}
	if *size += n; *size > MostBytes {
		return errors.New("more than 64 MiB")
	}
	_, err = fmt.Fprintf(h, "%q %t %x\n", p, info.Mode()&0o111 != 0, sum.Sum(nil))
	return err
}
