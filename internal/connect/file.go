package connect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ken/capability"
	"ken/internal/wholefile"
)

// readFile reads a file and says what the path leads to. A file that is not
// there is empty.
func readFile(path string) (data []byte, target string, err error) {
	fail := func(err error, fix string) ([]byte, string, error) {
		return nil, "", &capability.Error{Kind: capability.Unavailable, Op: "read", Target: path, Err: err, Fix: fix}
	}
	if !isThere(path) {
		return nil, path, nil
	}
	target, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(errors.New("link to a file that does not exist"), "make the file, or take the link away")
	}
	if err != nil {
		return fail(err, "see that it can be read")
	}
	info, err := os.Stat(target) // before opening: opening a pipe would wait
	if err != nil {
		return fail(err, "see that it can be read")
	}
	if !info.Mode().IsRegular() {
		return fail(errors.New("not a plain file"), "name the file itself")
	}
	f, err := os.Open(target)
	if err != nil {
		return fail(err, "see that it can be read")
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, Largest+1))
	if err != nil {
		return fail(err, "see that it can be read")
	}
	if len(data) > Largest {
		return fail(fmt.Errorf("file is larger than %d bytes", Largest), "make it smaller")
	}
	return data, target, nil
}

// unfinished is how files are called that are not complete.
const unfinished = ".ken-connect-*"

// sweep takes away what a process left that was killed: it may hold secrets.
// One that is at work right now keeps its own.
func sweep(dir string) {
	left, err := filepath.Glob(filepath.Join(dir, unfinished))
	if err != nil {
		return // a folder whose name is a pattern: nothing is found
	}
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > time.Minute {
			os.Remove(path)
		}
	}
}

// replaceFile replaces the content of a file atomically: readers see the old file
// or the new one, also after a crash. Mode and owner are kept, except that other
// users lose access to a file that is private now. check is called just before
// the replacement; its error prevents it.
func replaceFile(path string, data []byte, private bool, check func() error) (err error) {
	mode := fs.FileMode(0o600)
	info, err := os.Stat(path)
	switch {
	case err == nil:
		mode = info.Mode().Perm()
		if private {
			mode &= 0o700
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	sweep(filepath.Dir(path))
	f, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if info != nil {
		if err := keepOwner(f, info); err != nil {
			return err
		}
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return wholefile.SyncFolder(filepath.Dir(path))
}
