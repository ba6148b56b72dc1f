package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Batch is what [Store.Apply] does at once: preconditions, then puts and
// deletes, each key at most once in either. The order does not matter. The
// zero Batch is empty and ready; it is not for several goroutines at once.
// It keeps the values it is given, which must not change until it was applied.
type Batch struct {
	wants  []want
	caps   []atMost
	writes []write
	past   int64
}

type want struct {
	key     string
	version int64 // 0: absent
}

// An atMost is a precondition on how many keys there are.
type atMost struct {
	prefix string
	most   int
}

type write struct {
	key   string
	value []byte
	ttl   time.Duration // 0: for good
	drop  bool          // a delete
	quiet bool          // with drop: nobody who watches is told

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

// AtMost lets the batch pass only if at most so many keys begin with prefix, which
// ends in a slash, before it is applied. Batches that share a transaction may be counted as if each wrote a
// new key.
func (b *Batch) AtMost(prefix string, most int) {
	b.caps = append(b.caps, atMost{prefix, most})
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

// Remove takes the key away like Delete, but leaves no trace: those who watch are
// not told. It is for keys that come and go often and that nobody watches for their
// end. The traces of Delete stay for ten minutes, and every Scan of their prefix
// passes them.
func (b *Batch) Remove(key string) {
	b.writes = append(b.writes, write{key: key, drop: true, quiet: true})
}

// Past makes the version of the batch, and of all later ones, higher than this one. It
// also lets the batch pass in a store that was put back to an earlier state (see
// [ErrRestored]), where later versions already stood for something else.
func (b *Batch) Past(version int64) { b.past = version }

// Join adds all that another batch has.
func (b *Batch) Join(other *Batch) {
	b.wants = append(b.wants, other.wants...)
	b.caps = append(b.caps, other.caps...)
	b.writes = append(b.writes, other.writes...)
	b.past = max(b.past, other.past)
}

// Empty reports whether the batch has neither preconditions nor writes.
func (b *Batch) Empty() bool { return len(b.wants)+len(b.caps)+len(b.writes) == 0 }

// maxTTL keeps expiries within what either database counts.
const maxTTL = 100 * 365 * 24 * time.Hour

func (b *Batch) check() error {
	if n := max(len(b.writes), len(b.wants), len(b.caps)); n > MaxWrites {
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
	for _, m := range b.caps {
		if err := checkPrefix(m.prefix); err != nil {
			return err
		}
		if m.most < 0 || !strings.HasSuffix(m.prefix, "/") {
			return fmt.Errorf("%w: at most %d keys may begin with %q; use a prefix that ends in a slash, and a number that is not negative", ErrInvalid, m.most, m.prefix)
		}
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

	top    int64 // the newest version that this process has seen
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

// caps returns the prefixes whose keys must be counted for decide.
func (g *group) caps() []string {
	var prefixes []string
	for _, r := range g.requests {
		for _, m := range r.batch.caps {
			if !slices.Contains(prefixes, m.prefix) {
				prefixes = append(prefixes, m.prefix)
			}
		}
	}
	return prefixes
}

// take drops the requests that were withdrawn before its first call. The others cannot
// be withdrawn until untake.
func (g *group) take() {
	if !g.taken {
		g.taken = true
		g.requests = take(g.requests)
	}
}

// untake lets the requests be withdrawn again.
func (g *group) untake() {
	g.taken = false
	for _, r := range g.requests {
		r.state.Store(waiting)
	}
}

// written returns the keys that the group changed, as decide found them.
func (g *group) written() []string {
	keys := make([]string, len(g.writes))
	for i, w := range g.writes {
		keys[i] = w.key
	}
	return keys
}

// decide judges the requests one after the other, given the newest version, the
// versions of the keys that are there and how many begin with a prefix, and sets
// g.writes to what is to be written: of several writes of one key the last. It is called with the store
// locked and may be called again when the transaction is made again. Requests
// that were withdrawn until the first time are left out from then on.
func (g *group) decide(head int64, have map[string]int64, counts map[string]int) {
	g.take()
	g.head, g.writes = head, nil
	at := map[string]int{} // of a key in g.writes
	for _, r := range g.requests {
		r.err = r.batch.judge(have, counts)
		if head < g.top && r.batch.past == 0 {
			r.err = cause(ErrRestored, fmt.Errorf("it is at version %d, and this process has seen version %d", head, g.top), "see ken doctor --cluster")
		}
		if r.err != nil {
			continue
		}
		changed, next := false, max(g.head, r.batch.past)+1
		for _, w := range r.batch.writes {
			if w.drop && have[w.key] == 0 {
				continue
			}
			changed = true
			for prefix := range counts {
				switch {
				case !strings.HasPrefix(w.key, prefix):
				case w.drop:
					counts[prefix]--
				case have[w.key] == 0:
					counts[prefix]++
				}
			}
			w.version = next
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
			g.head = next
		}
		r.version = g.head
	}
}

func (b *Batch) judge(have map[string]int64, counts map[string]int) error {
	for _, w := range b.wants {
		if v := have[w.key]; v != w.version {
			return &Conflict{Key: w.key, Want: w.version, Have: v}
		}
	}
	for _, m := range b.caps {
		if n := counts[m.prefix]; n > m.most {
			return &Conflict{Key: m.prefix, Want: int64(m.most), Have: int64(n)}
		}
	}
	return nil
}
