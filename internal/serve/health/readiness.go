package health

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"ken/internal/store"
)

// Recordable returns why nothing can be recorded in the audit log. last is the
// log's own error, and folders are those that it writes to. After an error that
// a disk was full it tries to write: the log tries again only with the next
// record, and there is none while Ken reports that nothing works.
func Recordable(last error, folders ...string) error {
	for _, dir := range folders {
		if err := store.Room(dir); err != nil {
			return fmt.Errorf("write %s: %w", dir, err)
		}
	}
	return roomAgain(last, folders...)
}

// roomAgain returns err, or nil if err says that a disk or quota was full and
// every folder can be written to now.
func roomAgain(err error, folders ...string) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	for _, dir := range folders {
		if err := tryWrite(dir); err != nil {
			return fmt.Errorf("write %s: %w; make room there", dir, err)
		}
	}
	return nil
}

// writable returns why a folder that exists cannot be read or written to.
// Ken creates the others when it needs them.
func writable(folders ...string) error {
	for _, dir := range folders {
		if _, err := os.ReadDir(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := tryWrite(dir); err != nil {
			return fmt.Errorf("write %s: %w", dir, err)
		}
	}
	return nil
}

// tryWrite writes a file into a folder. The file has no name while it is written,
// because an unknown file beside the audit log counts as a stray.
func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".ready-*")
	if err != nil {
		return err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	return errors.Join(err, f.Close()) // some systems say only there that it was too much
}
