// Package wholefile writes files completely or not at all, and provides the
// locks for changing them.
//
// A reader, also after a crash or a loss of power, sees the old content or the
// new, never a mixture. What is unfinished lies beside it for a moment under a
// name that begins with a dot and ends in .tmp; a process that is killed there
// leaves it behind.
//
// Nothing is said here about what a file may be: whether a symbolic link is
// followed, whose a file must be and which mode it keeps is for callers to
// decide before they write.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes data the content of a file of a mode, in the place of whatever
// has that name, and makes it last. The folder must be there. A symbolic link
// of that name is replaced, not followed.
func Write(path string, data []byte, mode fs.FileMode) error {
	temp, err := Stage(path, data, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// Create is [Write] where nothing has that name, for this user alone. Of
// several who do it at once the first wins; the others, and all who come
// later, get an error that is [fs.ErrExist], and the file stays as it is. On a
// file system without hard links the others may find it empty for a moment, and
// so may all after a crash at that moment.
func Create(path string, data []byte) error { return create(path, data, os.Link) }

// create is Create where hard links are made by link.
func create(path string, data []byte, link func(from, to string) error) error {
	temp, err := Stage(path, data, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	err = link(temp, path)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		err = claim(temp, path)
	}
	if err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// claim renames temp to path where nothing has that name, by an empty file that
// keeps the name for it.
func claim(temp, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.Close() // there is nothing in it
	if err := os.Rename(temp, path); err != nil {
		os.Remove(path)
		return err
	}
	return nil
}

// Stage writes a file beside path and makes it last, for callers who look once
// more before they rename it to path, or remove it, and then call [SyncFolder].
func Stage(path string, data []byte, mode fs.FileMode) (temp string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	if mode != 0o600 {
		if err := f.Chmod(mode); err != nil {
			return "", err
		}
	}
	return f.Name(), f.Sync()
}
