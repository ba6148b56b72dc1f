package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/store"
)

// A holder is what a lock says.
type holder struct {
	V       int       `json:"v"`
	Who     string    `json:"who"`
	Since   time.Time `json:"since"`
	Process string    `json:"process,omitempty"`
}

const opBegin = "begin a turn of"

// Lock begins a turn. While another one runs, in whatever process, it fails
// with [ErrBusy] and says whose it is and since when. A session that this
// program cannot read, or not without loss, is not locked.
//
// The turn's [Turn.Context] ends with ctx, and when the lock is lost. The lock
// itself outlives ctx: a turn that was aborted still writes down how it ended,
// and must be released.
func (s *Store) Lock(ctx context.Context, who capability.Principal, id string) (*Turn, error) {
	for {
		t, err := s.read(ctx, who, id)
		if err != nil {
			return nil, err
		}
		if err = t.hold(ctx); err == nil {
			return t, nil
		}
		t.cancel(context.Canceled)
		s.coming.leave(t)
		if c, ok := errors.AsType[*store.Conflict](err); ok {
			if c.Key == t.keys.lock {
				if freed, err := s.free(ctx, t.keys.lock); err != nil || freed {
					if err != nil {
						return nil, err
					}
					continue
				}
				return nil, s.busy(ctx, opBegin, t.keys)
			}
			continue // a whole turn came between: look again
		}
		return nil, err
	}
}

// Prepare is Lock for a turn that has no effect before its first Append: that
// takes the lock, in the same commit. Until then the session is as it was, also
// after a crash.
//
// A turn that runs is found by Prepare, and of two that are prepared in one
// process by the second Prepare. Should another process begin a turn in the
// meantime, the first Append fails with [ErrBusy]; then nothing was written,
// and nothing more can be.
func (s *Store) Prepare(ctx context.Context, who capability.Principal, id string) (*Turn, error) {
	t, err := s.read(ctx, who, id)
	if err != nil {
		return nil, err
	}
	item, there, err := s.db.Get(ctx, t.keys.lock)
	if err == nil && there { // most are free, and one look says so
		if _, err = s.free(ctx, t.keys.lock); err == nil {
			item, there, err = s.db.Get(ctx, t.keys.lock)
		}
	}
	if err == nil && there {
		err = s.taken(opBegin, t.keys, item.Value)
	}
	if err != nil {
		t.cancel(context.Canceled)
		s.coming.leave(t)
		return nil, err
	}
	return t, nil
}

// read makes a turn without a lock. All is read before anything is written, and
// the head's version says later that nothing came after it.
func (s *Store) read(ctx context.Context, who capability.Principal, id string) (*Turn, error) {
	k := keysOf(who, id)
	me, err := encode(holder{formatVersion, s.cfg.Holder, s.now(), s.cfg.Process})
	if err != nil {
		return nil, err
	}
	t := &Turn{store: s, keys: k, holder: me}
	if other := s.coming.enter(t); other != t {
		return nil, s.taken(opBegin, k, other.holder)
	}
	if t.snapshot, err = s.load(ctx, opBegin, who, id); err != nil {
		s.coming.leave(t)
		return nil, err
	}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	return t, nil
}

// A coming has the turns of this process that have no lock yet, one for each
// session. The zero value is ready.
type coming struct {
	mu   sync.Mutex
	have map[string]*Turn // by the key of the head
}

// enter returns the turn that is there now: t, or one that was there before.
func (c *coming) enter(t *Turn) *Turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.have[t.keys.head]; other != nil {
		return other
	}
	if c.have == nil {
		c.have = map[string]*Turn{}
	}
	c.have[t.keys.head] = t
	return t
}

// leave takes a turn out, if it is there.
func (c *coming) leave(t *Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have[t.keys.head] == t {
		delete(c.have, t.keys.head)
	}
}

// free takes away a lock whose process is dead, and reports whether it did.
func (s *Store) free(ctx context.Context, lock string) (bool, error) {
	if s.cfg.Dead == nil {
		return false, nil
	}
	item, there, err := s.db.Get(ctx, lock)
	if err != nil || !there || !s.left(item.Value) {
		return false, err
	}
	var b store.Batch
	b.At(lock, item.Version) // not a lock that was taken since
	b.Delete(lock)
	_, err = s.db.Apply(ctx, &b)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// left reports whether the process that took a lock is certainly dead.
func (s *Store) left(lock []byte) bool {
	var h holder
	return s.cfg.Dead != nil && json.Unmarshal(lock, &h) == nil && h.Process != "" && h.Process != s.cfg.Process && s.cfg.Dead(h.Process)
}

// Running reports whether a turn of a session runs, in whatever process. A lock whose
// process is dead does not count.
func (s *Store) Running(ctx context.Context, who capability.Principal, id string) (bool, error) {
	lock := keysOf(who, id).lock
	_, there, err := s.db.Get(ctx, lock)
	if err != nil || !there {
		return false, err
	}
	freed, err := s.free(ctx, lock)
	return !freed, err
}

// RunningOf is Running for several sessions. It asks the store once, and leaves the
// locks of dead processes where they are.
func (s *Store) RunningOf(ctx context.Context, who capability.Principal, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	locks := make([]string, len(ids))
	for i, id := range ids {
		locks[i] = keysOf(who, id).lock
	}
	held, err := s.db.GetAll(ctx, locks...)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for i, id := range ids {
		item, there := held[locks[i]]
		out[id] = there && !s.left(item.Value)
	}
	return out, nil
}

// busy says who holds a session.
func (s *Store) busy(ctx context.Context, op string, k keys) error {
	item, _, err := s.db.Get(ctx, k.lock)
	if err != nil {
		item.Value = nil
	}
	return s.taken(op, k, item.Value)
}

// taken says it in the words of a lock, which may be empty.
func (s *Store) taken(op string, k keys, lock []byte) error {
	err := error(ErrBusy)
	var h holder
	if json.Unmarshal(lock, &h) == nil {
		err = fmt.Errorf("%w since %s, in %s", ErrBusy, h.Since.Format(time.RFC3339), h.Who)
	}
	return fault(capability.Unavailable, op, k.id, err,
		fmt.Sprintf("wait until it ends, or abort it; after a crash the session is free within %s", duration.Text(s.cfg.LockFor)))
}

// hold takes the lock alone.
func (t *Turn) hold(ctx context.Context) error {
	var b store.Batch
	b.Absent(t.keys.lock) // first: of a turn that runs, the head changes too
	b.At(t.keys.head, t.version)
	b.PutFor(t.keys.lock, t.holder, t.store.cfg.LockFor)
	until := time.Now().Add(t.store.cfg.LockFor)
	version, err := t.store.db.Apply(ctx, &b)
	if errors.Is(err, store.ErrUncertain) {
		if mine, ok := t.written(ctx, t.keys.lock, t.holder); ok {
			version, err = mine, nil
		}
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held(version, until)
	return nil
}

// held notes that the turn has its lock, which is kept alive from now on.
func (t *Turn) held(version int64, until time.Time) {
	t.state, t.lock, t.until = running, version, until
	t.store.coming.leave(t)
	t.timer = time.AfterFunc(t.store.cfg.LockFor/3, t.renew)
}

// written looks what became of a batch of which that is not known: its version,
// if the key has the value that the batch gave it.
func (t *Turn) written(ctx context.Context, key string, value []byte) (int64, bool) {
	item, there, err := t.store.db.Get(ctx, key)
	return item.Version, err == nil && there && bytes.Equal(item.Value, value)
}

// renew keeps the lock alive until Release.
func (t *Turn) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.extend() {
		t.timer.Reset(t.store.cfg.LockFor / 3)
	}
}

// extend renews the lock once. It reports false once there is none.
func (t *Turn) extend() bool {
	if t.state != running || t.refusal != nil {
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
		if mine, ok := t.written(ctx, t.keys.lock, t.holder); ok {
			t.lock = mine
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

// lose ends the turn's context.
func (t *Turn) lose(err error) error {
	t.refusal = fault(capability.Conflict, "write to", t.keys.id, fmt.Errorf("%w: %w", ErrLost, err),
		"another process took it after this one was silent for too long, or deleted it; read it and begin a turn")
	t.cancel(t.refusal)
	return t.refusal
}

// late ends a turn that was prepared, and for which another one was faster.
func (t *Turn) late(ctx context.Context, c *store.Conflict) error {
	t.store.coming.leave(t)
	switch {
	case c.Key == t.keys.lock:
		t.refusal = t.store.busy(ctx, opBegin, t.keys)
	case c.Have == 0:
		t.refusal = none(opBegin, t.keys.id)
	default:
		t.refusal = fault(capability.Unavailable, opBegin, t.keys.id, fmt.Errorf("%w, or has just ended", ErrBusy), "read what it came to and begin again")
	}
	return t.refusal
}

// Release ends the turn: it writes what SetHead changed and lets go of the
// session. It must be called; more than once does nothing more. Without it the
// lock lasts until the process ends. An error means that the session stays
// locked for up to [Config.LockFor].
func (t *Turn) Release(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	defer t.cancel(context.Canceled)
	defer t.store.coming.leave(t)
	if t.refusal != nil || t.state == ended || t.state == prepared && !t.dirty {
		return nil // there is nothing to let go of
	}
	var b store.Batch
	if t.dirty {
		r := t.record
		r.Head.Updated = t.store.now()
		if err := t.commit(ctx, &b, r, nil, true); err != nil {
			return err
		}
	} else {
		b.At(t.keys.lock, t.lock)
		b.Delete(t.keys.lock)
		_, err := t.store.db.Apply(ctx, &b)
		if err != nil && !errors.Is(err, store.ErrConflict) { // of which the latter: it was no longer ours
			return err
		}
	}
	t.store.recent.put(t.keys.head, t.snapshot)
	return nil
}
