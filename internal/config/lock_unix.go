//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package config

import (
	"errors"
	"os"
	"syscall"
	"time"

	"ken/capability"
)

const (
	lockWait  = 5 * time.Second
	lockPause = 5 * time.Millisecond
)

// lockFolder keeps other edits in a directory waiting, in this process and in
// others, and leaves no file behind. Where the file system has no locks it
// does nothing: what else guards an edit remains.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for start := time.Now(); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return func() { f.Close() }, nil
		case time.Since(start) > lockWait:
			f.Close()
			return nil, &capability.Error{
				Kind: capability.Conflict, Op: "lock", Target: dir,
				Err: errors.New("another edit is under way"), Fix: "try again when it has ended",
			}
		}
	}
}

// syncFolder makes a rename in a directory last. Some file systems cannot, and
// then it need not.
func syncFolder(dir string) error {
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
