package session

import (
	"bytes"
	"slices"
	"sync"

	"ken/internal/store"
)

// What a store keeps of sessions at rest, at most.
const (
	recentSessions = 64
	recentBytes    = 16 << 20
	entryBytes     = 512 // of an entry besides its text, about
)

// A snapshot is a session as it stood at one version of its head. Its entries
// are shared and never changed.
type snapshot struct {
	record  record
	version int64
	head    []byte // the record as it is stored
	entries []Entry
	size    int // of the entries, about
}

// A recent caches the sessions that were used last, so that a conversation is not
// read again in each of its turns. It is not authoritative: its callers have read
// the head, which changes with every entry that any process writes. The zero
// value is ready to use.
type recent struct {
	mu    sync.Mutex
	have  map[string]*used
	bytes int
	clock int
}

type used struct {
	snapshot
	at int // by the clock, which counts uses
}

// get returns the session of a head, if it is the one that is known.
func (r *recent) get(head store.Item) (snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.have[head.Key]
	// A version is never given twice, but by a store that was set back.
	if u == nil || u.version != head.Version || !bytes.Equal(u.head, head.Value) {
		return snapshot{}, false
	}
	r.clock++
	u.at = r.clock
	return u.snapshot, true
}

// put keeps a session, in the place of an older version of it. One that would
// leave no room for others is not kept.
func (r *recent) put(key string, s snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.have[key]; u != nil && u.version > s.version {
		return
	}
	r.dropLocked(key)
	if s.size += len(s.head); s.size > recentBytes/2 {
		return
	}
	for len(r.have) >= recentSessions || r.bytes+s.size > recentBytes {
		r.dropLocked(r.oldest())
	}
	if r.have == nil {
		r.have = map[string]*used{}
	}
	r.clock++
	s.entries = slices.Clip(s.entries) // what is added to it goes elsewhere
	r.have[key] = &used{s, r.clock}
	r.bytes += s.size
}

func (r *recent) drop(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(key)
}

func (r *recent) dropLocked(key string) {
	if u := r.have[key]; u != nil {
		r.bytes -= u.size
		delete(r.have, key)
	}
}

func (r *recent) oldest() (key string) {
	at := r.clock + 1
	for k, u := range r.have {
		if u.at < at {
			key, at = k, u.at
		}
	}
	return key
}
