// Package store keeps all durable state of Ken: bytes under keys, in an SQLite
// file or in PostgreSQL, for several processes at once.
//
// A key is a few parts with slashes between them, made by [Key]; keys are
// ordered by their bytes. Every write of a key gives it a version. Versions
// grow with each batch over the whole store, so a key that was deleted and
// made again never has an old version.
//
// Everything that must happen once, or by one process only, rests on the
// preconditions of a [Batch]:
//
//	var b store.Batch
//	b.Absent(key)                      // the lock is free, or its time is over
//	b.PutFor(key, me, 30*time.Second)  // now we do
//	_, err := s.Apply(ctx, &b)
//	if errors.Is(err, store.ErrConflict) { … } // it is held
//
// What the program wants of a store (sessions, approvals, grants) are types of
// its own over this one.
package store

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"
)

// A Store is open until [Store.Close]. Its methods may be used by any number
// of goroutines, and the same place by any number of processes.
//
// Errors name the operation, the place without its password, the cause and the
// mend; their kinds are the Err values of this package. A context that ends
// gives its own error.
type Store struct {
	place string // for people
	db    database
	queue *queue
	bell  *bell
	trust trust

	closing sync.Once
	closed  chan struct{}
	err     error // of closing
}

// An Item is a key that is there. Its value belongs to the caller.
type Item struct {
	Key     string
	Value   []byte
	Version int64     // of the batch that wrote it, > 0
	Expires time.Time // by the store's clock; zero: never
}

// A database is what Store needs of SQLite and of PostgreSQL. What it is given
// was checked. Its errors have a kind.
type database interface {
	get(ctx context.Context, key string) (Item, bool, error)
	getAll(ctx context.Context, keys []string) (map[string]Item, error)
	read(ctx context.Context, q Query) (map[string]Item, error)
	// page returns the items from a key on and before another, in order: at most
	// limit, and none after those that together reach pageBytes.
	page(ctx context.Context, from, before string, limit int) ([]Item, error)
	// commit makes one transaction of the group: locks, calls decide, and
	// writes. It fails for all or succeeds for all, whatever decide says. The
	// context ends its wait for the lock and nothing after that.
	commit(ctx context.Context, g *group) error
	// head is the version of the newest batch.
	head(ctx context.Context) (int64, error)
	// changes is like page, in order of versions after a place.
	changes(ctx context.Context, after mark, prefix string, limit int) (news, error)
	// listen calls wake when another process may have written, until ctx ends,
	// with the keys as [bell.ring] wants them. It may call too often and must not
	// call too rarely.
	listen(ctx context.Context, wake func(keys []string))
	// writable says why a write would be refused, as far as that can be told
	// without one.
	writable(ctx context.Context) error
	// snapshot writes a copy of all that is stored to a new file.
	snapshot(ctx context.Context, file string) error
	close() error
}

const (
	pageItems = 128
	pageBytes = 1 << 20
)

// Open opens a store and makes or updates its tables. The address is
//
//   - empty: the file ken.db in dir;
//   - a path, sqlite:PATH or sqlite:///PATH: an SQLite file, which is made,
//     readable by its owner only; a path that is not absolute lies below dir;
//   - postgres://USER:PASSWORD@HOST/DATABASE: PostgreSQL 15 or newer. The
//     tables are ken_item, ken_head, ken_schema and ken_mail in the first schema of the
//     search path, which ?search_path=NAME sets.
//
// SQLite's files must be on a disk of this machine, not on a network share, and
// nothing else in this process may open them: closing one takes away the locks
// that the process has on it. PostgreSQL must be reached without a pooler that
// shares connections between transactions. The context is for opening alone.
func Open(ctx context.Context, address, dir string) (*Store, error) {
	p, err := parsePlace(address, dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return open(ctx, p, plans())
}

func open(ctx context.Context, p place, plans plan) (*Store, error) {
	var db database
	var err error
	if p.postgres != nil {
		db, err = openPostgres(ctx, p, plans.postgres)
	} else {
		db, err = openSQLite(ctx, p.file, plans.sqlite)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", p.shown, p.scrub(err))
	}
	s := &Store{place: p.shown, db: db, closed: make(chan struct{})}
	s.bell = newBell(db.listen)
	s.queue = newQueue(s.trust.noting(db.commit), func(g *group) { s.bell.ring(g.written()) })
	return s, nil
}

// Place says where the store is, for people: without a password.
func (s *Store) Place() string { return s.place }

// Snapshot writes a copy of an SQLite store to a new file, as it is at one moment.
// Others may write meanwhile. A PostgreSQL store has its own tools for that, and
// returns [ErrInvalid].
func (s *Store) Snapshot(ctx context.Context, file string) error {
	if err := s.db.snapshot(ctx, file); err != nil {
		return s.fail("copy", err)
	}
	return nil
}

// Close waits for the batches that are being written, refuses those that wait,
// and ends every Watch. After it all methods fail with [ErrClosed].
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.closed)
		s.queue.close()
		s.bell.close()
		if err := s.db.close(); err != nil {
			s.err = s.fail("close", err)
		}
	})
	return s.err
}

// Get reads one key. It reports false for a key that is not there or has
// expired.
func (s *Store) Get(ctx context.Context, key string) (Item, bool, error) {
	err := s.ready(ctx)
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return Item{}, false, s.fail("read", err)
	}
	item, ok, err := s.db.get(ctx, key)
	if err != nil {
		return Item{}, false, s.fail("read "+key+" from", err)
	}
	return item, ok, nil
}

// GetAll reads several keys, at one moment where the store is PostgreSQL. Those that are
// not there, or have expired, are left out.
func (s *Store) GetAll(ctx context.Context, keys ...string) (map[string]Item, error) {
	err := s.ready(ctx)
	for _, key := range keys {
		if err == nil {
			err = checkKey(key)
		}
	}
	var items map[string]Item
	if err == nil && len(keys) > 0 {
		items, err = s.db.getAll(ctx, keys)
	}
	if err != nil {
		return nil, s.fail("read keys from", err)
	}
	return items, nil
}

// A Range narrows a [Store.Scan]. The zero Range is all of it.
type Range struct {
	After string // only keys behind this one, which need not be there
	Limit int    // at most so many items; 0: no limit
}

// Scan reads the keys that begin with prefix, in order; most prefixes end in a
// slash, since "a" is also a prefix of "ab". It reads a page at a time and
// holds nothing meanwhile: each item was there when its page was read, no key
// comes twice, and a key that is there all along is not left out. After an
// error nothing follows.
func (s *Store) Scan(ctx context.Context, prefix string, r Range) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := s.scan(ctx, prefix, r, func(i Item) bool { return yield(i, nil) }); err != nil {
			yield(Item{}, s.fail("scan "+prefix+" in", err))
		}
	}
}

func (s *Store) scan(ctx context.Context, prefix string, r Range, yield func(Item) bool) error {
	if err := checkPrefix(prefix); err != nil {
		return err
	}
	if err := checkPrefix(r.After); err != nil {
		return err
	}
	if r.Limit < 0 {
		return fmt.Errorf("%w: the limit is %d; give 0 for no limit", ErrInvalid, r.Limit)
	}
	from, before := prefix, past(prefix)
	if r.After != "" {
		from = max(from, behind(r.After))
	}
	for left := r.Limit; ; {
		if err := s.ready(ctx); err != nil {
			return err
		}
		n := pageItems
		if r.Limit > 0 {
			n = min(n, left)
		}
		items, err := s.db.page(ctx, from, before, n)
		if err != nil {
			return err
		}
		size := 0
		for _, item := range items {
			if !yield(item) {
				return nil
			}
			size += len(item.Value)
		}
		left -= len(items)
		if len(items) < n && size < pageBytes || r.Limit > 0 && left == 0 {
			return nil
		}
		from = behind(items[len(items)-1].Key)
	}
}

// Apply does all that the batch says, or nothing: then the error is a
// [Conflict] where a precondition did not hold. When it returns without an
// error the batch is on disk. The version is that of every key it put; a batch
// that changes nothing returns the version at which its preconditions held.
//
// Batches that wait together share one transaction, and each still fails
// alone. A context that ends before the batch's turn takes it back for certain;
// after that Apply waits for the outcome, which takes one commit.
func (s *Store) Apply(ctx context.Context, b *Batch) (version int64, err error) {
	err = s.ready(ctx)
	if err == nil {
		err = b.check()
	}
	if err == nil {
		version, err = s.queue.do(ctx, b)
	}
	if err != nil {
		return 0, s.fail("apply to", err)
	}
	return version, nil
}

func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closed:
		return cause(ErrClosed, nil, "open it again")
	default:
		return nil
	}
}

func (s *Store) fail(op string, err error) error {
	return fmt.Errorf("%s store %s: %w", op, s.place, err)
}
