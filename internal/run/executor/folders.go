package executor

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"ken/internal/wholefile"
)

const (
	// mostListed is how many names a folder may have for its list to be kept.
	mostListed = 2000

	// stillFor is how long a folder must not have changed for that. The list of one
	// that changes all the time would be read at each call.
	stillFor = time.Second
)

// Folders knows the names in a few folders, so that most words of a call's arguments
// need no system call to see that they name no file there. It looks at a folder once
// for each call: a list that may have changed is not used. The zero value is ready,
// and its methods are safe for concurrent use.
type Folders struct {
	mu    sync.Mutex
	lists map[string]*folderList
	now   func() time.Time // nil: time.Now
}

// A folderList has the names in a folder.
type folderList struct {
	stamp wholefile.Stamp
	names map[string]bool // in small letters; nil: they say nothing about what is missing
}

// Texts is [Facts.Texts].
func (c *Folders) Texts(f *Facts, raw json.RawMessage, dirs ...string) { f.texts(c, raw, dirs) }

// list returns the names in a folder, or nil if each name must be looked up.
func (c *Folders) list(dir string) *folderList {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	known := c.lists[dir]
	c.mu.Unlock()
	if known == nil || !known.stamp.Unchanged() {
		known = c.read(dir)
		if known == nil {
			return nil
		}
		c.mu.Lock()
		if c.lists == nil || len(c.lists) >= 64 { // each server has one or two
			c.lists = map[string]*folderList{}
		}
		c.lists[dir] = known
		c.mu.Unlock()
	}
	if known.names == nil {
		return nil
	}
	return known
}

// read reads the names in a folder. It returns nil for a folder that has just
// changed.
func (c *Folders) read(dir string) *folderList {
	out := &folderList{stamp: wholefile.StampOf(dir)} // before the names: what changes later is seen by it
	now := time.Now
	if c.now != nil {
		now = c.now
	}
	if out.stamp.Info == nil || now().Sub(out.stamp.Changed()).Abs() < stillFor {
		return nil
	}
	if !keepsTime(dir) {
		return out
	}
	f, err := os.Open(dir)
	if err != nil {
		return out
	}
	defer f.Close()
	entries, err := f.Readdirnames(mostListed + 1)
	if len(entries) > mostListed || err != nil && err != io.EOF {
		return out
	}
	names := make(map[string]bool, len(entries))
	for _, name := range entries {
		if !plainName(name) {
			return out // other letters may be equal to ours where capitals do not count
		}
		names[strings.ToLower(name)] = true
	}
	out.names = names
	return out
}

// misses reports whether there is certainly no file of a relative name.
func (l *folderList) misses(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	return l != nil && plainName(first) && first != "." && !l.names[strings.ToLower(first)]
}

// plainName reports whether a name has only the characters of ASCII.
func plainName(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return false
		}
	}
	return name != ""
}
