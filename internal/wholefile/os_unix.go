//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package wholefile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock keeps others who lock the same file waiting, in this process and in
// others, until unlock is called or the process ends. The file is made where it
// is missing, for this user alone, and stays: removing it would let two in. A
// symbolic link in its place is refused. The error is [ErrHeld] after wait, and
// [errors.ErrUnsupported] where the file system has no locks.
func Lock(path string, wait time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return hold(f, wait)
}

// LockFolder is [Lock] of a folder itself: it leaves no file behind.
func LockFolder(dir string, wait time.Duration) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return hold(f, wait)
}

// hold takes the lock of f, which is closed with it, or at once.
func hold(f *os.File, wait time.Duration) (unlock func(), err error) {
	for start := time.Now(); ; time.Sleep(pause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() {
				// A child that is being started may have the descriptor for a
				// moment: closing alone would not free the lock.
				_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
				f.Close()
			}, nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w: %w", f.Name(), errors.ErrUnsupported, err)
		case time.Since(start) >= wait:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), ErrHeld)
		}
	}
}

// SyncFolder makes the names in a folder last: what was made, renamed or
// removed there. Some file systems cannot, and then need not.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
