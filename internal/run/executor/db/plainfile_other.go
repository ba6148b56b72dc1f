//go:build !linux

package db

import (
	"errors"
	"os"
	"path/filepath"
)

// A fileID names a file. Here nothing compares it.
type fileID struct{}

// plainFile returns the path of a regular file to which no symbolic link leads.
// Links in the root folder, such as /tmp, are the system's own.
func plainFile(path string) (string, fileID, error) {
	path = filepath.Clean(path)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fileID{}, errNotThere
	case err != nil:
		return "", fileID{}, errUnseen
	}
	for at := path; filepath.Dir(at) != at; at = filepath.Dir(at) {
		one, err := os.Lstat(at)
		if err != nil {
			return "", fileID{}, errUnseen
		}
		if top := filepath.Dir(filepath.Dir(at)) == filepath.Dir(at); one.Mode()&os.ModeSymlink != 0 && !top {
			return "", fileID{}, errLink
		}
	}
	if !info.Mode().IsRegular() {
		return "", fileID{}, errNotPlain
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fileID{}, errUnseen
	}
	return path, fileID{}, nil
}

func (f *sqliteFile) is(fileID) bool { return true }
