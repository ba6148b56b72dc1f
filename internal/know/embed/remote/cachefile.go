package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"
)

// lookUp returns the vectors that are kept, whether the model is known to be the
// one that made them, and whether it is not to be asked that now.
func (c *Cache) lookUp(keys []textKey) (have map[textKey][]float32, known, resting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have = c.fetch(keys)
	return have, c.known && c.keptDims() != 0 || c.off, time.Now().Before(c.resting)
}

// fetch reads vectors from the file, after what others added to it. A record
// that is not what it was counts as absent.
func (c *Cache) fetch(keys []textKey) map[textKey][]float32 {
	have := make(map[textKey][]float32, len(keys))
	if c.off {
		return have
	}
	f, err := c.open(os.O_RDONLY)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.trouble = fmt.Errorf("read vectors from %s: %w", c.path, err)
		}
		c.forget()
		return have
	}
	defer f.Close()
	if err := c.update(f); err != nil {
		c.trouble = fmt.Errorf("read vectors from %s: %w", c.path, err)
	}
	dims := cmp.Or(c.next.Dimensions(), c.keptDims())
	var buffer []byte
	for _, key := range keys {
		at, ok := c.scan.places[key]
		if !ok || int(at.dims) != dims || have[key] != nil {
			continue
		}
		if size := recordSize(dims); len(buffer) != size {
			buffer = make([]byte, size)
		}
		if _, err := f.ReadAt(buffer, at.offset); err != nil {
			continue
		}
		if found, small, _, ok := readRecord(buffer); ok && found == key {
			have[key] = grow(small)
		}
	}
	return have
}

// update reads what is new in the file. One that is something else, or mostly
// unreadable, is set aside.
func (c *Cache) update(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if c.was == nil || !os.SameFile(c.was, info) || info.Size() < c.scan.next {
		c.forget()
	}
	c.was = info
	if err := c.scan.read(f, info.Size()); err != nil {
		return err
	}
	if c.scan.foreign() {
		c.setAside(errors.New("not a vector cache file, or a damaged one; a new file is started"))
	}
	return nil
}

// add appends records in one write, which other processes do not break up.
func (c *Cache) add(records []byte) error {
	if len(records) == 0 || c.off {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	const how = os.O_RDWR | os.O_APPEND | os.O_CREATE
	f, err := c.open(how)
	if errors.Is(err, fs.ErrExist) { // another process made it at this moment
		f, err = c.open(how)
	}
	if err != nil {
		return err
	}
	defer f.Close() // Write says whether it is written
	if err := c.update(f); err != nil || c.was == nil {
		return err
	}
	if c.was.Size()+int64(len(records)) > c.limit {
		return fmt.Errorf("file has reached its limit of %d MiB; new vectors are not kept; remove the file to start again", c.limit>>20)
	}
	if _, err := f.Write(records); err != nil {
		return err
	}
	return c.update(f) // so that they are found
}

// open opens the file if it is one, in a directory of the user's own: a link
// might lead elsewhere, a pipe would keep us waiting.
func (c *Cache) open(how int) (*os.File, error) {
	if info, err := os.Stat(c.dir); err != nil {
		return nil, err
	} else if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("directory is writable by other users; run chmod go-w %s", c.dir)
	}
	before, err := os.Lstat(c.path)
	if err == nil && !before.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file (%s); remove it", before.Mode().Type())
	}
	missing := errors.Is(err, fs.ErrNotExist) && how&os.O_CREATE != 0
	switch {
	case missing:
		how |= os.O_EXCL
	case err != nil:
		return nil, err
	}
	f, err := os.OpenFile(c.path, how, 0o600)
	if err != nil || missing {
		return f, err
	}
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		_ = f.Close() // nothing was written
		return nil, errors.New("file was replaced while it was being opened")
	}
	return f, nil
}

// setAside moves the file out of the way, over the one that was moved before.
func (c *Cache) setAside(why error) {
	c.trouble = fmt.Errorf("vectors in %s: %w", c.path, why)
	if now, err := os.Lstat(c.path); err == nil && c.was != nil && os.SameFile(now, c.was) { // or another process was first
		if err := os.Rename(c.path, c.path+asideSuffix); err != nil {
			c.off, c.trouble = true, fmt.Errorf("%w; it cannot be moved away: %w; remove it", c.trouble, err)
		}
	}
	c.forget()
}

func (c *Cache) forget() { c.scan, c.was = scan{places: map[textKey]place{}}, nil }
