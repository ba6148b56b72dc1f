package store

import (
	"fmt"
	"time"
)

// A Batch is what [Store.Apply] does at once: preconditions, then puts and
// deletes, each key at most once in either. The order does not matter. The
// zero Batch is empty and ready; it is not for several goroutines at once.
// It keeps the values it is given, which must not change until it was applied.
type Batch struct {
	wants  []want
	writes []write
}

type want struct {
	key     string
	version int64 // 0: absent
}

type write struct {
	key   string
	value []byte
	ttl   time.Duration // 0: for good
	drop  bool          // a delete

	version int64 // given by decide
}

// Absent lets the batch pass only if the key is not there; an expired key is
// not there.
func (b *Batch) Absent(key string) { b.wants = append(b.wants, want{key: key}) }

// At lets the batch pass only if the key is there at this version. Version 0
// is that of a key that is not there: so At(key, item.Version) after a Get
// says "as I have seen it" in either case.
func (b *Batch) At(key string, version int64) {
	b.wants = append(b.wants, want{key: key, version: version})
}

// Put sets the key for good: an expiry that it had is gone.
func (b *Batch) Put(key string, value []byte) {
	b.writes = append(b.writes, write{key: key, value: value})
}

// PutFor sets the key for a time that begins when the batch is applied, by the
// store's clock: that of the machine for SQLite, that of the server for
// PostgreSQL. It counts in microseconds.
func (b *Batch) PutFor(key string, value []byte, ttl time.Duration) {
	if ttl == 0 {
		ttl = -1 // refused: zero would be for good
	}
	b.writes = append(b.writes, write{key: key, value: value, ttl: ttl})
}

// Delete takes the key away. It is no error if it is not there.
func (b *Batch) Delete(key string) { b.writes = append(b.writes, write{key: key, drop: true}) }

// maxTTL keeps expiries within what either database counts.
const maxTTL = 100 * 365 * 24 * time.Hour

func (b *Batch) check() error {
	if n := max(len(b.writes), len(b.wants)); n > MaxWrites {
		return fmt.Errorf("%w: the batch has %d entries, the limit is %d; split it", ErrInvalid, n, MaxWrites)
	}
	seen := make(map[string]bool, len(b.wants))
	for _, w := range b.wants {
		switch err := checkKey(w.key); {
		case err != nil:
			return err
		case w.version < 0:
			return fmt.Errorf("%w: the key %s is expected at version %d; use the version that Get or Apply gave", ErrInvalid, w.key, w.version)
		case seen[w.key]:
			return fmt.Errorf("%w: the batch has two preconditions for the key %s; keep one", ErrInvalid, w.key)
		}
		seen[w.key] = true
	}
	clear(seen)
	size := 0
	for _, w := range b.writes {
		switch err := checkKey(w.key); {
		case err != nil:
			return err
		case seen[w.key]:
			return fmt.Errorf("%w: the batch writes the key %s twice; keep one", ErrInvalid, w.key)
		case len(w.value) > MaxValue:
			return fmt.Errorf("%w: the value of %s has %d bytes, the limit is %d; put it in a file and store the file's name", ErrInvalid, w.key, len(w.value), MaxValue)
		case w.ttl < 0 || w.ttl > maxTTL || w.ttl > 0 && w.ttl < time.Microsecond:
			return fmt.Errorf("%w: the key %s is to expire after %v; give a time between 1µs and 100 years, or use Put", ErrInvalid, w.key, w.ttl)
		}
		seen[w.key] = true
		size += len(w.key) + len(w.value)
	}
	if size > MaxBatch {
		return fmt.Errorf("%w: the batch has %d bytes, the limit is %d; split it", ErrInvalid, size, MaxBatch)
	}
	return nil
}

// A group is the requests that one transaction carries out, each as if alone.
type group struct {
	requests []*request
	taken    bool

	head   int64 // the newest version, also after decide
	writes []write
}

// keys names what decide has to know: keys with a precondition or a delete.
func (g *group) keys() []string {
	var keys []string
	seen := map[string]bool{}
	add := func(key string) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, r := range g.requests {
		for _, w := range r.batch.wants {
			add(w.key)
		}
		for _, w := range r.batch.writes {
			if w.drop {
				add(w.key)
			}
		}
	}
	return keys
}

// decide judges the requests one after the other, given the newest version and
// the versions of the keys that are there, and sets g.writes to what is to be
// written: of several writes of one key the last. It is called with the store
// locked and may be called again when the transaction is made again. Requests
// that were withdrawn until the first time are left out from then on.
func (g *group) decide(head int64, have map[string]int64) {
	if !g.taken {
		g.taken = true
		g.requests = take(g.requests)
	}
	g.head, g.writes = head, nil
	at := map[string]int{} // of a key in g.writes
	for _, r := range g.requests {
		r.err = r.batch.judge(have)
		if r.err != nil {
			continue
		}
		changed := false
		for _, w := range r.batch.writes {
			if w.drop && have[w.key] == 0 {
				continue
			}
			changed = true
			w.version = g.head + 1
			have[w.key] = w.version
			if w.drop {
				delete(have, w.key)
			}
			if i, ok := at[w.key]; ok {
				g.writes[i] = w
			} else {
				at[w.key] = len(g.writes)
				g.writes = append(g.writes, w)
			}
		}
		if changed {
			g.head++
		}
		r.version = g.head
	}
}

func (b *Batch) judge(have map[string]int64) error {
	for _, w := range b.wants {
		if v := have[w.key]; v != w.version {
			return &Conflict{Key: w.key, Want: w.version, Have: v}
		}
	}
	return nil
}
