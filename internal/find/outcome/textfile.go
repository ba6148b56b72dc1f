package outcome

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// A TextFile takes lines for people. It opens its file for each write. A file
// that has grown too long is renamed to PATH.1 first.
type TextFile struct {
	Path string

	mu sync.Mutex
}

const longestText = 8 << 20

// Write appends lines to the file.
func (l *TextFile) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(l.Path), 0o700); err != nil {
		return 0, err
	}
	if info, err := os.Stat(l.Path); err == nil && info.Size() > longestText {
		_ = os.Rename(l.Path, l.Path+".1") // a log that cannot be moved grows on
	}
	f, err := os.OpenFile(l.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	return n, errors.Join(err, f.Close())
}
