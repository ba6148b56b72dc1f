package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// checkEvery is how long an answer of [Store.Check] stands.
const checkEvery = time.Second

// trialKey is what Check writes to see whether writing works again.
const trialKey = "ready"

// A trust is what is known of whether the store can be written.
type trust struct {
	failed atomic.Pointer[error] // why the last write failed; nil: it did not

	mu   sync.Mutex // held during a check
	when time.Time  // of the last check
	said error      // what they found
}

// noting remembers how writes end.
func (t *trust) noting(commit func(context.Context, *group) error) func(context.Context, *group) error {
	return func(ctx context.Context, g *group) error {
		err := commit(ctx, g)
		switch {
		case err != nil:
			t.failed.Store(&err)
		case len(g.writes) > 0:
			t.failed.Store(nil)
		}
		return err
	}
}

// Check says why nothing can be written, nil where something can. It looks at
// most once a second, and writes nothing unless the last write failed: then it
// writes a small key to learn whether that is over. What only a write can find,
// such as a quota or the full disk of a server, it knows once one has failed.
func (s *Store) Check(ctx context.Context) error {
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.when.IsZero() && time.Since(t.when) < checkEvery {
		return t.said
	}
	err := s.ready(ctx)
	if err == nil {
		err = s.db.writable(ctx)
	}
	if err == nil && t.failed.Load() != nil {
		var trial Batch
		trial.PutFor(trialKey, nil, time.Minute)
		_, err = s.queue.do(ctx, &trial)
	}
	if err != nil {
		err = s.fail("check", err)
		if ctx.Err() != nil {
			return err // the caller gave up; a wait of the store's own is an answer
		}
	}
	t.when, t.said = time.Now(), err
	return err
}

func (s *sqlite) writable(context.Context) error {
	if err := s.there(); err != nil {
		return err
	}
	return Room(s.file)
}

// writable asks the server whether it is one that takes writes, and ours.
func (s *postgres) writable(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	var refused bool
	err := s.retried(asking, func() error {
		return s.pool.QueryRow(asking, "SELECT pg_is_in_recovery() OR NOT has_table_privilege('ken_item', 'INSERT') FROM ken_head").Scan(&refused)
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return s.waited(ctx, err)
	case refused:
		return cause(ErrReadOnly, nil, "use the primary server, or a user that may write")
	}
	return nil
}

// leastRoom is how much a disk must have left to be of use.
const leastRoom = 256 << 10
