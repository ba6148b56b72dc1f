package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// A Turn is a session that its holder alone writes to, until [Turn.Release].
// Its methods may be used by any number of goroutines.
type Turn struct {
	store *Store
	keys  keys

	ctx    context.Context
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed by Release
	done   chan struct{} // closed when the lock is no longer renewed

	mu      sync.Mutex
	record  record
	version int64 // of the head
	entries []Entry
	lock    int64 // its version
	holder  []byte
	until   time.Time
	dirty   bool // the head has changes that are not written
	moved   bool // it has its new place in the list
	over    bool
}

// A holder is what a lock says.
type holder struct {
	V     int       `json:"v"`
	Who   string    `json:"who"`
	Since time.Time `json:"since"`
}

// Lock begins a turn. While another one runs, in whatever process, it fails
// with [ErrBusy] and says whose it is and since when. A session that this
// program cannot read, or not without loss, is not locked.
//
// The turn's [Turn.Context] ends with ctx, and when the lock is lost. The lock
// itself outlives ctx: a turn that was aborted still writes down how it ended,
// and must be released.
func (s *Store) Lock(ctx context.Context, who capability.Principal, id string) (*Turn, error) {
	const op = "begin a turn of"
	k := keysOf(who, id)
	since, err := encode(holder{formatVersion, s.cfg.Holder, s.now()})
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for {
		r, version, err := s.head(ctx, op, who, id)
		if err != nil {
			return nil, err
		}
		// All is read before anything is written, and the head's version says
		// that nothing came after it.
		if entries, err = s.entries(ctx, k, entries, r.Head.Last); err != nil {
			return nil, err
		}
		var b store.Batch
		b.At(k.head, version)
		b.Absent(k.lock)
		b.PutFor(k.lock, since, s.cfg.LockFor)
		until := time.Now().Add(s.cfg.LockFor)
		lock, err := s.db.Apply(ctx, &b)
		if c, ok := errors.AsType[*store.Conflict](err); ok {
			if c.Key == k.lock {
				return nil, s.busy(ctx, op, k)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		t := &Turn{
			store: s, keys: k, record: r, version: version, entries: entries, lock: lock, holder: since, until: until,
			stop: make(chan struct{}), done: make(chan struct{}),
		}
		t.ctx, t.cancel = context.WithCancelCause(ctx)
		go t.renew()
		return t, nil
	}
}

// busy says who holds a session.
func (s *Store) busy(ctx context.Context, op string, k keys) error {
	err := error(ErrBusy)
	if item, there, e := s.db.Get(ctx, k.lock); e == nil && there {
		var h holder
		if json.Unmarshal(item.Value, &h) == nil {
			err = fmt.Errorf("%w since %s, in %s", ErrBusy, h.Since.Format(time.RFC3339), h.Who)
		}
	}
	return fault(capability.Unavailable, op, k.id, err,
		fmt.Sprintf("wait until it ends, or abort it; after a crash the session is free within %v", s.cfg.LockFor))
}

// Context ends when the context of Lock does, and when the lock is lost; its
// cause is then [ErrLost].
func (t *Turn) Context() context.Context { return t.ctx }

// Head is the head with all changes that were made to it.
func (t *Turn) Head() Head {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record.Head
}

// Entries gives all entries, hidden ones and notes too. They are as they were
// stored, byte for byte what a later process will read: to send what was given
// to Append instead would break the prefix when the session is taken up again.
// They must not be changed.
func (t *Turn) Entries() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.entries)
}

// SetHead changes the head. The change is written with the next Append, or by
// Release. Whose the session is, when it was made and what Append counts
// (Last, Turns, Usage, Cost, Updated) stay as they are.
func (t *Turn) SetHead(change func(*Head)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.record.Head
	change(&h)
	old := &t.record.Head
	t.dirty = t.dirty || h.Title != old.Title || h.Folder != old.Folder || h.Agent != old.Agent || h.Mode != old.Mode || h.Open != old.Open
	old.Title, old.Folder, old.Agent, old.Mode, old.Open = h.Title, h.Folder, h.Agent, h.Mode, h.Open
}

// Append writes entries, all or none, in one commit. It gives each its Seq, and
// its Time where it has none. It counts turns, and adds each entry's Usage and
// Cost to the head's. When it returns without an error they are on disk.
//
// It fails with [ErrLost] where the turn no longer has the session, and with
// [ErrTooLarge] above about 15 MB; either way nothing was written.
func (t *Turn) Append(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable(); err != nil {
		return err
	}
	var b store.Batch
	r := t.record
	now := t.store.now()
	r.Head.Updated = now
	fresh := make([]Entry, 0, len(entries))
	size := 0
	for _, e := range entries {
		r.Head.Last++
		e.Seq = r.Head.Last
		if e.Time.IsZero() {
			e.Time = now
		}
		data, kept, err := t.encode(e)
		if err != nil {
			return err
		}
		if size += len(data); size > maxAppend {
			return tooLarge(t.keys.id, size)
		}
		puts(&b, t.keys.entry(e.Seq), data)
		fresh = append(fresh, kept)
		r.Head.Turns = max(r.Head.Turns, kept.Turn)
		if kept.Usage != nil {
			r.Head.Usage.Add(*kept.Usage)
		}
		r.Head.Cost += kept.Cost
	}
	if err := t.commit(ctx, &b, r); err != nil {
		return err
	}
	t.entries = append(t.entries, fresh...)
	return nil
}

// encode gives an entry as it is stored, and as it will be read: JSON keeps
// neither the spaces of a schema nor bytes that are no text.
func (t *Turn) encode(e Entry) ([]byte, Entry, error) {
	if e.To >= e.Seq || e.From < 0 || e.To < 0 {
		return nil, Entry{}, fault(capability.Invalid, "write to", t.keys.id, fmt.Errorf("entry %d hides %d to %d", e.Seq, e.From, e.To), "an entry hides earlier ones only")
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	data, err := encode(stored{formatVersion, e})
	if err != nil {
		return nil, Entry{}, fault(capability.Invalid, "write to", t.keys.id, err, "what a tool gives as JSON must be JSON")
	}
	kept, err := decodeEntry(store.Item{Key: t.keys.entry(e.Seq), Value: data})
	return data, kept, err
}

// commit writes a batch with the head, under the lock.
func (t *Turn) commit(ctx context.Context, b *store.Batch, r record) error {
	if !t.moved {
		place := placeAt(r.Head.Updated)
		if place != r.Place {
			b.Delete(t.keys.list(r.Place))
			b.Put(t.keys.list(place), []byte(listed))
			r.Place = place
		}
	}
	data, err := encodeHead(r)
	if err != nil {
		return err
	}
	b.At(t.keys.lock, t.lock)
	b.At(t.keys.head, t.version)
	b.Put(t.keys.head, data)
	version, err := t.store.db.Apply(ctx, b)
	if errors.Is(err, store.ErrUncertain) {
		// Nobody else may write this head, so what it is now says whether it
		// was written.
		item, there, e := t.store.db.Get(ctx, t.keys.head)
		if e == nil && there && bytes.Equal(item.Value, data) {
			version, err = item.Version, nil
		}
	}
	switch {
	case errors.Is(err, store.ErrConflict):
		return t.lose(err)
	case err != nil:
		return err
	}
	t.record, t.version, t.dirty, t.moved = r, version, false, true
	return nil
}

// usable says why nothing can be written.
func (t *Turn) usable() error {
	if cause := context.Cause(t.ctx); errors.Is(cause, ErrLost) {
		return cause
	}
	if t.over {
		return fault(capability.Conflict, "write to", t.keys.id, fmt.Errorf("%w: it was released", ErrLost), "begin a turn")
	}
	return nil
}

// lose ends the turn's context.
func (t *Turn) lose(err error) error {
	lost := fault(capability.Conflict, "write to", t.keys.id, fmt.Errorf("%w: %w", ErrLost, err),
		"another process took it after this one was silent for too long, or deleted it; read it and begin a turn")
	t.cancel(lost)
	return lost
}

// Release ends the turn: it writes what SetHead changed and lets go of the
// session. It must be called; more than once does nothing more. Without it the
// lock lasts until the process ends. An error means that the session stays
// locked for up to [Config.LockFor].
func (t *Turn) Release(ctx context.Context) error {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return nil
	}
	t.over = true
	close(t.stop)
	t.mu.Unlock()
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.cancel(context.Canceled)
	if errors.Is(context.Cause(t.ctx), ErrLost) {
		return nil // there is nothing to let go of
	}
	var b store.Batch
	b.Delete(t.keys.lock)
	if t.dirty {
		r := t.record
		r.Head.Updated = t.store.now()
		return t.commit(ctx, &b, r)
	}
	b.At(t.keys.lock, t.lock)
	_, err := t.store.db.Apply(ctx, &b)
	if errors.Is(err, store.ErrConflict) {
		return nil // it was no longer ours
	}
	return err
}

// renew keeps the lock alive until Release.
func (t *Turn) renew() {
	defer close(t.done)
	every := t.store.cfg.LockFor / 3
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-timer.C:
		}
		if !t.extend() {
			return
		}
		timer.Reset(every)
	}
}

// extend renews the lock once. It reports false once the lock is lost.
func (t *Turn) extend() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || errors.Is(context.Cause(t.ctx), ErrLost) {
		return false
	}
	until := time.Now().Add(t.store.cfg.LockFor)
	ctx, cancel := context.WithDeadline(context.Background(), t.until)
	defer cancel()
	var b store.Batch
	b.At(t.keys.lock, t.lock)
	b.PutFor(t.keys.lock, t.holder, t.store.cfg.LockFor)
	version, err := t.store.db.Apply(ctx, &b)
	if errors.Is(err, store.ErrUncertain) {
		// If it is still ours, its version is the one to go on from.
		if item, there, e := t.store.db.Get(ctx, t.keys.lock); e == nil && there && bytes.Equal(item.Value, t.holder) {
			t.lock = item.Version
		}
	}
	switch {
	case err == nil:
		t.lock, t.until = version, until
		return true
	case errors.Is(err, store.ErrConflict), !time.Now().Before(t.until):
		t.lose(err)
		return false
	}
	return true // the store is busy or away: there is still time
}
