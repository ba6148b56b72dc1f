//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package secret

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"ken/capability"
)

const (
	lockWait  = 10 * time.Second
	lockPause = 5 * time.Millisecond
)

// lock keeps other writers waiting by a file that only one can make. A writer
// that died leaves it behind, and a person takes it away.
func lock(path string) (unlock func(), err error) {
	for start := time.Now(); ; time.Sleep(lockPause) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			return func() {
				f.Close()
				os.Remove(path)
			}, nil
		}
		if time.Since(start) > lockWait {
			return nil, &capability.Error{
				Kind: capability.Conflict, Op: "write secrets", Target: path,
				Err: errors.New("another program is writing them, or one died at it"), Fix: "try again; if none is running, delete " + path,
			}
		}
	}
}

func syncFolder(string) error { return nil }

func fileID(fs.FileInfo) uint64 { return 0 }

func ofSystem(fs.FileInfo) bool { return false }
