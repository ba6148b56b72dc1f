package session

import (
	"context"
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

	mu sync.Mutex
	snapshot
	state   state
	lock    int64 // its version
	holder  []byte
	until   time.Time
	timer   *time.Timer // renews the lock
	refusal error       // why nothing more can be written
	dirty   bool        // the head has changes that are not written
	moved   bool        // it has its new place in the list
	closing bool        // the next append is the last
	over    bool        // it was released
}

// A state says what a turn has of its session.
type state int

const (
	prepared state = iota // no lock yet
	running               // the lock
	ended                 // no lock any more
)

// Context ends when the context of Lock does, and when the lock is lost; its
// cause is then [ErrLost].
func (t *Turn) Context() context.Context { return t.ctx }

// Head is the head with all changes that were made to it.
func (t *Turn) Head() Head {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record.Head
}

// Entries returns all entries, hidden ones and notes too. They are as they were
// stored, byte for byte what a later process will read: to send what was given
// to Append instead would break the prefix when the session is taken up again.
// They must not be changed.
func (t *Turn) Entries() []Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.entries)
}

// SetHead changes the head. The change is written with the next Append, or by
// Release. Whose the session is, who began it, when it was made and what Append
// counts (Last, Turns, Usage, Cost, Updated) stay as they are.
func (t *Turn) SetHead(change func(*Head)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.record.Head
	change(&h)
	old := &t.record.Head
	t.dirty = t.dirty || h.Title != old.Title || h.Folder != old.Folder || h.Agent != old.Agent || h.Mode != old.Mode || h.Open != old.Open
	old.Title, old.Folder, old.Agent, old.Mode, old.Open = h.Title, h.Folder, h.Agent, h.Mode, h.Open
}

// Closing makes the next Append the last: its commit also lets go of the
// session. Release is still to be called, and has nothing to write then. An
// Append that fails is not the last.
func (t *Turn) Closing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// Append writes entries, all or none, in one commit. It gives each its Seq, and
// its Time where it has none. It counts turns, and adds each entry's Usage and
// Cost to the head's. When it returns without an error they are on disk.
//
// It fails with [ErrLost] where the turn no longer has the session, with
// [ErrBusy] where it was only prepared and another one was faster, and with
// [ErrTooLarge] above [MaxAppend]; each time nothing was written.
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
	var first []byte
	r := t.record
	now := t.store.now()
	r.Head.Updated = now
	fresh := make([]Entry, 0, len(entries))
	size := 0
	for i, e := range entries {
		r.Head.Last++
		e.Seq = r.Head.Last
		if e.Time.IsZero() {
			e.Time = now
		}
		data, e, err := t.encode(e)
		if err != nil {
			return err
		}
		if size += len(data); size > MaxAppend {
			return tooLarge(t.keys.id, size)
		}
		value := puts(&b, t.keys.entry(e.Seq), data)
		if i == 0 {
			first = value
		}
		fresh = append(fresh, e)
		r.Head.Turns = max(r.Head.Turns, e.Turn)
		if e.Usage != nil {
			r.Head.Usage.Add(*e.Usage)
		}
		r.Head.Cost += e.Cost
	}
	last := t.closing
	if err := t.commit(ctx, &b, r, first, last); err != nil {
		return err
	}
	t.entries = append(t.entries, fresh...)
	t.size += size + len(fresh)*entryBytes
	if last {
		t.store.recent.put(t.keys.head, t.snapshot)
	}
	return nil
}

// encode returns an entry as it is stored, and as it will be read: JSON keeps
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
	if e, ok := kept(e); ok {
		return data, e, nil
	}
	e, err = decodeEntry(store.Item{Key: t.keys.entry(e.Seq), Value: data})
	return data, e, err
}

// commit writes a batch with the head, under the lock: it takes the lock where
// the turn has none yet, and lets go of it with the last batch. The first entry
// of the batch is given as it is stored, if there is one.
func (t *Turn) commit(ctx context.Context, b *store.Batch, r record, first []byte, last bool) error {
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
	t.fence(b, last)
	b.At(t.keys.head, t.version)
	b.Put(t.keys.head, data)
	until := time.Now().Add(t.store.cfg.LockFor)
	version, err := t.store.db.Apply(ctx, b)
	if errors.Is(err, store.ErrUncertain) {
		if at, ok := t.settle(ctx, data, first, last); ok {
			version, err = at, nil
		}
	}
	if c, ok := errors.AsType[*store.Conflict](err); ok {
		if t.state == prepared {
			return t.late(ctx, c)
		}
		return t.lose(err)
	}
	if err != nil {
		return err
	}
	switch {
	case last:
		t.state = ended
		t.store.coming.leave(t)
	case t.state == prepared:
		t.held(version, until)
	}
	t.record, t.version, t.head, t.dirty, t.moved = r, version, data, false, true
	return nil
}

// fence lets a batch pass only for this turn, and says what becomes of the
// lock. It comes before the head: of a turn that runs, the head changes too.
func (t *Turn) fence(b *store.Batch, last bool) {
	if t.state == prepared {
		b.Absent(t.keys.lock)
		if !last {
			b.PutFor(t.keys.lock, t.holder, t.store.cfg.LockFor)
		}
		return
	}
	b.At(t.keys.lock, t.lock)
	if last {
		b.Delete(t.keys.lock)
	}
}

// settle finds out whether a batch was written. While the turn holds the lock, no
// other process writes the head, so the head shows it. A lock that the batch took
// must be there too, because another process may have written the same words
// first. After the last batch others may write the head, but never that entry.
func (t *Turn) settle(ctx context.Context, head, first []byte, last bool) (int64, bool) {
	if last && first != nil {
		return t.written(ctx, t.keys.entry(t.record.Head.Last+1), first)
	}
	if t.state == prepared && !last {
		if _, ok := t.written(ctx, t.keys.lock, t.holder); !ok {
			return 0, false
		}
	}
	return t.written(ctx, t.keys.head, head)
}

// usable says why nothing can be written.
func (t *Turn) usable() error {
	if t.refusal != nil {
		return t.refusal
	}
	if t.over || t.state == ended {
		return fault(capability.Conflict, "write to", t.keys.id, fmt.Errorf("%w: it was released", ErrLost), "begin a turn")
	}
	return nil
}
