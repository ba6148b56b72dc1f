//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// removal is how many times in a row one may be denied a file because another
// is removing it.
const removal = 20

// Lock keeps others waiting by a file that only one can make. A process that
// died leaves it behind, and a person takes it away: the error is [ErrHeld]
// after wait and names the file.
func Lock(path string, wait time.Duration) (unlock func(), err error) {
	denied := 0
	for start := time.Now(); ; time.Sleep(pause) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		switch {
		case err == nil:
			return func() {
				f.Close()
				os.Remove(path)
			}, nil
		case errors.Is(err, fs.ErrPermission) && denied < removal:
			denied++
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case time.Since(start) >= wait:
			return nil, fmt.Errorf("lock: %w, or one died with it; if none is running, delete %s", ErrHeld, path)
		default:
			denied = 0
		}
	}
}

// LockFolder cannot be done here.
func LockFolder(dir string, _ time.Duration) (unlock func(), err error) {
	return nil, fmt.Errorf("lock %s: %w", dir, errors.ErrUnsupported)
}

// SyncFolder does nothing here: the file system orders names itself.
func SyncFolder(string) error { return nil }
