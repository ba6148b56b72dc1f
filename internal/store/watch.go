package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Change is the newest state of a key: put, or, without a value, gone.
type Change struct {
	Item
	Gone bool // deleted or expired
}

// FromNow makes a [Store.Watch] leave out what was written before it.
const FromNow int64 = -1

// A mark is a place in the order of changes.
type mark struct {
	version int64
	key     string
}

// News are the changes after a mark, with the store's head and the newest
// version of which a trace was swept away, all at one moment.
type news struct {
	head, swept int64
	changes     []Change
}

// Watch returns the changes of keys that begin with prefix, by this process and
// all others, in order of their versions, and then waits for more until the
// context ends, the store closes or the caller stops; the first two are its
// last error. Another process's change arrives within about 50 ms with SQLite
// and as fast as the network with PostgreSQL.
//
// It returns those after a version. After 0 it begins with every key that is
// there, so that no Scan is needed before it; after [FromNow] with none.
//
// What counts is where a key ends up: of several changes in quick succession
// the last is given, and the one before it may be. Nothing is given at the
// moment a key expires: its change said when that will be. All changes of a
// batch have one version: to go on later, a watcher goes on after the
// version before the last one seen.
//
// While PostgreSQL cannot be reached, Watch waits and then goes on where it
// was. A caller that takes more than ten minutes over one change may find that
// deletions can no longer be told: the error is [ErrLagged].
func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[Change, error] {
	err := s.ready(ctx)
	if err == nil {
		err = checkPrefix(prefix)
	}
	if err == nil && after < FromNow {
		err = fmt.Errorf("%w: changes after version %d; give a version, 0 or FromNow", ErrInvalid, after)
	}
	if err == nil && after == FromNow { // now is when Watch is called
		after, err = s.db.head(ctx)
	}
	return func(yield func(Change, error) bool) {
		e := err
		if e == nil {
			e = s.watch(ctx, prefix, after, func(c Change) bool { return yield(c, nil) })
		}
		if e != nil {
			yield(Change{}, s.fail("watch "+prefix+" in", e))
		}
	}
}

func (s *Store) watch(ctx context.Context, prefix string, after int64, yield func(Change) bool) error {
	defer s.bell.attend()()
	at := mark{version: after, key: "\x7f"} // all of that version was seen
	first := int64(-1)                      // the head when a watch from the start began: what was gone by then is not told
	for {
		rung := s.bell.rung(prefix) // before reading, so that what comes meanwhile rings
		for {
			if err := s.ready(ctx); err != nil {
				return err
			}
			n, err := s.news(ctx, at, prefix)
			if err != nil {
				return err
			}
			if first < 0 {
				first = 0
				if after == 0 {
					first = n.head
				}
			}
			if n.swept > max(at.version, first) {
				return cause(ErrLagged, nil, "watch again from version 0 and take what comes for all there is")
			}
			size := 0
			for _, c := range n.changes {
				if c.Gone && c.Version <= first {
					continue
				}
				if !yield(c) {
					return nil
				}
				size += len(c.Value)
			}
			if len(n.changes) < pageItems && size < pageBytes {
				at = mark{n.head, "\x7f"}
				break
			}
			last := n.changes[len(n.changes)-1]
			at = mark{last.Version, last.Key}
		}
		select {
		case <-rung:
		case <-ctx.Done():
		case <-s.closed:
		}
	}
}

// news asks again while the database is away.
func (s *Store) news(ctx context.Context, after mark, prefix string) (news, error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, longestAway) {
		n, err := s.db.changes(ctx, after, prefix, pageItems)
		if err == nil || !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy) {
			return n, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return news{}, ctx.Err()
		case <-s.closed:
			return news{}, s.ready(ctx)
		}
	}
}

// A bell tells those who watch that there may be something new for them. It listens
// for other processes while anybody attends.
type bell struct {
	listen func(context.Context, func(keys []string))

	mu        sync.Mutex
	waiting   map[string]chan struct{} // by prefix; each is closed at the next ring for it
	attending int
	closed    bool
	stop      context.CancelFunc
	done      sync.WaitGroup
}

func newBell(listen func(context.Context, func([]string))) *bell {
	return &bell{listen: listen, waiting: map[string]chan struct{}{}}
}

// ring wakes those whose prefix one of the keys may have. A key that ends in a slash
// stands for all keys that begin with it. No keys at all wake everybody.
func (b *bell) ring(keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for prefix, waiting := range b.waiting {
		if len(keys) == 0 || slices.ContainsFunc(keys, func(key string) bool { return concerns(key, prefix) }) {
			close(waiting)
			delete(b.waiting, prefix)
		}
	}
}

func concerns(key, prefix string) bool {
	return strings.HasPrefix(key, prefix) || strings.HasSuffix(key, "/") && strings.HasPrefix(prefix, key)
}

// rung returns a channel that closes at the first ring for a prefix from now on.
func (b *bell) rung(prefix string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.waiting[prefix]
	if next == nil {
		next = make(chan struct{})
		b.waiting[prefix] = next
	}
	return next
}

func (b *bell) attend() (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return func() {}
	}
	if b.attending++; b.attending == 1 {
		ctx, stop := context.WithCancel(context.Background())
		b.stop = stop
		b.done.Go(func() { b.listen(ctx, b.ring) })
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.attending--; b.attending == 0 {
			b.stop()
		}
	}
}

// close stops listening and waits until it has.
func (b *bell) close() {
	b.mu.Lock()
	b.closed = true
	if b.stop != nil {
		b.stop()
	}
	b.mu.Unlock()
	b.done.Wait()
}

// Since returns the version of the newest batch, and the changes after a version of
// keys that begin with prefix: at most 128, all at one moment.
func (s *Store) Since(ctx context.Context, prefix string, after int64) (head int64, changes []Change, err error) {
	if err = s.ready(ctx); err == nil {
		err = checkPrefix(prefix)
	}
	var n news
	if err == nil {
		n, err = s.db.changes(ctx, mark{version: after, key: "\x7f"}, prefix, pageItems)
	}
	if err != nil {
		return 0, nil, s.fail("read changes of "+prefix+" in", err)
	}
	return n.head, n.changes, nil
}
