package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// A fileKey identifies one state of a file. A change of the bytes changes the
// key, if only through the time of the last change, which only root can set.
type fileKey struct {
	dev, ino       uint64
	size           int64
	mtime, changed int64 // in nanoseconds
}

// A sum holds what is known about a file's bytes.
type sum struct {
	key    fileKey
	sha256 string
	head   string // its first bytes
}

// digests caches the sums of files by path and key. The zero value is empty.
type digests struct {
	mu    sync.Mutex
	known map[string]sum
}

const (
	mostDigests = 4096
	longestHead = 256
	largestCode = 1 << 30 // a larger file is identified by its key alone

	// settledFor is how old the last change of a file must be before its digest
	// is cached, because two changes may share a tick of the file system's
	// clock.
	settledFor = time.Second
)

// of returns the sum of a regular file, or false if it is not one or cannot be
// read.
func (d *digests) of(path string) (sum, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return sum{}, false
	}
	return d.as(path, info)
}

// as is like of, for a regular file with this state.
func (d *digests) as(path string, info fs.FileInfo) (sum, bool) {
	key := keyOf(info)
	d.mu.Lock()
	old, ok := d.known[path]
	d.mu.Unlock()
	if ok && old.key == key {
		return old, true
	}
	now, err := readSum(path)
	if err != nil {
		return sum{}, false
	}
	if time.Since(time.Unix(0, max(now.key.mtime, now.key.changed))) > settledFor {
		d.mu.Lock()
		if d.known == nil || len(d.known) >= mostDigests {
			d.known = map[string]sum{}
		}
		d.known[path] = now
		d.mu.Unlock()
	}
	return now, true
}

var errMoving = errors.New("the file keeps changing")

// readSum returns the sum of a file, or errMoving if the file keeps changing.
func readSum(path string) (sum, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return sum{}, err
	}
	defer f.Close()
	for range 4 {
		before, err := f.Stat()
		switch {
		case err != nil:
			return sum{}, err
		case !before.Mode().IsRegular():
			return sum{}, errors.New("not a regular file")
		}
		s := sum{key: keyOf(before)}
		if s.sha256, s.head, err = s.key.digest(f); err != nil {
			return sum{}, err
		}
		after, err := f.Stat()
		if err != nil {
			return sum{}, err
		}
		if keyOf(after) == s.key {
			return s, nil
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return sum{}, err
		}
	}
	return sum{}, errMoving
}

func (k fileKey) digest(f *os.File) (text, head string, err error) {
	h := sha256.New()
	first := make([]byte, longestHead)
	n, err := io.ReadFull(f, first)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", "", err
	}
	h.Write(first[:n])
	if k.size > largestCode {
		fmt.Fprintf(h, "%+v", k)
	} else if _, err := io.Copy(h, f); err != nil {
		return "", "", err
	}
	return hex.EncodeToString(h.Sum(nil)), string(first[:n]), nil
}
