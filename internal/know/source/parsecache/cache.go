// Package parsecache keeps what large files and long tool lists were parsed to.
package parsecache

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
)

// MinSize is the size in bytes of the smallest file that is kept. Smaller ones
// are parsed sooner than looked up.
const MinSize = 64 << 10

const (
	maxEntry     = 64 << 20
	maxEntries   = 64
	maxCacheSize = 512 << 20
	entrySuffix  = ".parsed"
	scratchName  = "scratch-"
)

// A Cache keeps what large files were parsed to, by the hash of their bytes,
// the format, and the build of this program, so that neither another file nor
// other rules of the text scan are ever answered from it. A nil Cache and one
// without Dir keep nothing.
//
// What is in the cache was scanned when it was put there and is not scanned
// again, so Dir must be the user's alone; see [Cache.Check]. A damaged entry
// counts as absent. Several processes may use one directory.
type Cache struct {
	Dir string // made when it is missing
}

// Check makes sure that the directory exists and that no other user can write to
// it. A Tree whose cache does not pass works without it, and reports a problem.
func (c *Cache) Check() error {
	if c == nil || c.Dir == "" {
		return nil
	}
	dir, err := c.open()
	if err != nil {
		return err
	}
	return dir.Close()
}

// CheckUsed is Check for a directory that exists. One that was never needed is in
// order.
func (c *Cache) CheckUsed() error {
	if _, err := os.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.Check()
}

// open opens the directory and looks at the one that was opened, not at what
// its name may mean a moment later.
func (c *Cache) open() (*os.Root, error) {
	refuse := func(err error, fix string) error {
		return &capability.Error{Kind: capability.Denied, Op: "use cache", Target: c.Dir, Err: err, Fix: fix}
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, refuse(errors.New(safefs.PlainCause(err)), "name a directory that can be made")
	}
	dir, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, refuse(errors.New(safefs.PlainCause(err)), "check the directory and its permissions")
	}
	info, err := dir.Stat(".")
	switch {
	case err != nil:
		err = refuse(errors.New(safefs.PlainCause(err)), "check the directory and its permissions")
	case !ownedByUser(info):
		err = refuse(errors.New("directory belongs to another user, who could put text there that was never scanned"), "name a directory of your own")
	case info.Mode().Perm()&0o022 != 0:
		err = refuse(errors.New("directory is writable by other users, who could put text there that was never scanned"), "run chmod go-w on it")
	}
	if err != nil {
		_ = dir.Close() // the refusal says more
		return nil, err
	}
	return dir, nil
}

// Parse reads a unit by its format, or takes what the cache has of the same
// bytes. If the cache cannot be used, the unit gets a warning.
func (c *Cache) Parse(f format.Format, u *format.Unit) {
	if c == nil || c.Dir == "" || !f.Pure || len(u.Data) < MinSize {
		f.Read(u)
		return
	}
	err := c.Fill(KeyOf(u), u, u.Origin(u.Path, 0), func() (keep, details bool) {
		f.Read(u)
		// What cannot be read again by its place is kept whole.
		details = f.Keep || slices.ContainsFunc(u.Capabilities, func(c *capability.Capability) bool { return c.Origin.Length == 0 })
		return u.Context.Err() == nil && cacheable(u), details
	})
	if err != nil {
		warnCache(u, err)
	}
}

// Fill fills a unit from the entry of that key, or calls read to fill it and
// keeps the result if read says so, with the details of its capabilities or
// without. Origins are stored relative to home. The unit is filled in any case;
// an error says that the cache was of no use.
func (c *Cache) Fill(key Key, u *format.Unit, home capability.Origin, read func() (keep, details bool)) error {
	dir, err := c.open()
	if err != nil {
		read()
		return err
	}
	defer dir.Close()
	if take(dir, key, u, home) {
		return nil
	}
	keep, details := read()
	if !keep {
		return nil
	}
	packed := Pack(u, details, key)
	if err := put(dir, key, packed); err != nil {
		return fmt.Errorf("use cache %s: %s", c.Dir, safefs.PlainCause(err))
	}
	// What was just read is scattered over memory; the same out of the cache
	// lies together and takes a third less.
	unpack(packed, key, u, home)
	return nil
}

func warnCache(u *format.Unit, err error) {
	message, fix := err.Error(), "make room, or take the cache out of ken.yaml"
	var ce *capability.Error
	if errors.As(err, &ce) {
		message, fix = fmt.Sprintf("the cache %s is not used: %v", ce.Target, ce.Err), ce.Fix
	}
	u.Warn("cache-unused", u.Path, 0, message, fix)
}

// cacheable reports whether everything in the unit is about its one file.
func cacheable(u *format.Unit) bool {
	home := u.Origin(u.Path, 0)
	about := func(o capability.Origin) bool { return o.Source == home.Source && o.Path == home.Path }
	return len(u.Also) == 0 && len(u.Replaces) == 0 &&
		!slices.ContainsFunc(u.Capabilities, func(c *capability.Capability) bool { return !about(c.Origin) || c.Trust != u.Trust }) &&
		!slices.ContainsFunc(u.Problems, func(p capability.Problem) bool { return !about(p.Origin) }) &&
		!slices.ContainsFunc(u.Presets, func(p capability.Preset) bool { return !about(p.Origin) }) &&
		!slices.ContainsFunc(u.Documents, func(d capability.Document) bool { return !about(d.Origin) || d.Trust != u.Trust })
}

// A Key names an entry of the cache.
type Key [sha256.Size]byte

func (id Key) file() string { return hex.EncodeToString(id[:]) + entrySuffix }

// KeyOf returns the key of a unit. It covers all that the result of reading a
// pure format depends on.
func KeyOf(u *format.Unit) (id Key) {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s\n%q\n", Version, Build(), u.Format, path.Base(u.Path))
	for _, sum := range partSums(u.Data) {
		h.Write(sum[:])
	}
	h.Sum(id[:0])
	return id
}

// keyPart is how many bytes of a file are hashed at once.
const keyPart = 1 << 20

// partSums hashes the parts of a file, on all processors: hashing is most of what a
// start with a large catalog waits for.
func partSums(data []byte) [][sha256.Size]byte {
	sums := make([][sha256.Size]byte, (len(data)+keyPart-1)/keyPart)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(len(sums), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(sums); i = int(next.Add(1)) - 1 {
				sums[i] = sha256.Sum256(data[i*keyPart : min(len(data), (i+1)*keyPart)])
			}
		})
	}
	wg.Wait()
	return sums
}

// Build identifies this build of the program. Keys include it, because an entry
// of a build with other rules would let text pass that this one's scan stops.
func Build() string {
	var b strings.Builder
	if info, ok := debug.ReadBuildInfo(); ok {
		b.WriteString(info.String())
	}
	if name, err := os.Executable(); err == nil {
		if info, err := os.Stat(name); err == nil {
			fmt.Fprintf(&b, "%d %d", info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// take fills the unit from the cache and reports whether it could.
func take(dir *os.Root, id Key, u *format.Unit, home capability.Origin) bool {
	f, err := dir.Open(id.file())
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxEntry {
		return false
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil || !unpack(data, id, u, home) {
		return false
	}
	now := time.Now()
	_ = dir.Chtimes(id.file(), now, now) // so that what is used stays longest
	return true
}

// put writes an entry so that it appears whole or not at all, and makes room.
func put(dir *os.Root, id Key, data []byte) error {
	if len(data) > maxEntry {
		return nil
	}
	scratch := scratchName + rand.Text()
	f, err := dir.OpenFile(scratch, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = dir.Rename(scratch, id.file())
	}
	if err != nil {
		_ = dir.Remove(scratch) // the first error says why
		return err
	}
	return prune(dir)
}

// prune removes the entries that were not used for longest, beyond what the
// cache may hold, and what a killed process left half-written.
func prune(dir *os.Root) error {
	list, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	var entries []fs.FileInfo
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // another process was faster, or it is not ours
		}
		switch {
		case strings.HasSuffix(e.Name(), entrySuffix):
			entries = append(entries, info)
		case strings.HasPrefix(e.Name(), scratchName) && time.Since(info.ModTime()) > time.Hour:
			_ = dir.Remove(e.Name())
		}
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	total := int64(0)
	for i, info := range entries {
		if total += info.Size(); i >= maxEntries || total > maxCacheSize {
			_ = dir.Remove(info.Name()) // gone already is as good
		}
	}
	return nil
}
