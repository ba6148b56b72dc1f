//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package secret

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"ken/capability"
)

const (
	lockWait  = 10 * time.Second
	lockPause = 5 * time.Millisecond
)

// lock keeps other writers waiting, in this process and in others. The file
// stays: taking it away would let two writers hold two locks.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, &capability.Error{Kind: capability.Unavailable, Op: "write secrets", Target: path, Err: err, Fix: "see that its folder can be written"}
	}
	for start := time.Now(); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, &capability.Error{
				Kind: capability.Unavailable, Op: "write secrets", Target: path, Err: err,
				Fix: "keep the folder on a file system that has locks",
			}
		case time.Since(start) > lockWait:
			f.Close()
			return nil, &capability.Error{
				Kind: capability.Conflict, Op: "write secrets", Target: path,
				Err: errors.New("another program is writing them"), Fix: "try again when it has ended",
			}
		}
	}
}

// syncFolder makes a rename last. Some file systems cannot, and need not.
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

// fileID tells a replaced file from the one before, whatever the clock says.
func fileID(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// ofSystem reports whether root owns a file and we are not root.
func ofSystem(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0 && os.Getuid() != 0
}
