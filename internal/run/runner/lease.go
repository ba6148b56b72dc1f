package runner

import (
	"context"
	"sync"
	"time"

	"ken/internal/store"
)

// A lease shows other processes that a Runner is alive. It begins with the first
// claim.
type lease struct {
	store   Effects
	owner   string // the Runner
	process string // see Config.Process
	dead    func(process string) bool
	lasts   time.Duration
	within  time.Duration // that the end of the lease may take

	mu      sync.Mutex
	stop    context.CancelFunc // nil: not begun, or ended
	stopped chan struct{}      // closed when nothing renews it any more
}

func (l *lease) key() string { return store.Key("runner", l.owner) }

func (l *lease) begin(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		return nil
	}
	if err := l.renew(ctx); err != nil {
		return err
	}
	renewing, stop := context.WithCancel(context.Background())
	l.stop, l.stopped = stop, make(chan struct{})
	go l.keepRenewing(renewing, l.stopped)
	return nil
}

func (l *lease) renew(ctx context.Context) error {
	var b store.Batch
	b.PutFor(l.key(), []byte(l.process), l.lasts)
	_, err := l.store.Apply(ctx, &b)
	return err
}

// keepRenewing renews until the Runner closes. If that does not work for long
// enough, others take our calls for unknown, which is the safe mistake: they
// do not run them.
func (l *lease) keepRenewing(ctx context.Context, stopped chan struct{}) {
	defer close(stopped)
	tick := time.NewTicker(l.lasts / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = l.renew(ctx)
		}
	}
}

// haltRenewing ends the renewing, and reports whether there was any. It waits for
// the store, which once it writes heeds no context.
func (l *lease) haltRenewing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		return false
	}
	l.stop()
	<-l.stopped
	l.stop = nil
	return true
}

// runOut lets the lease run out: until then others are told that its calls run.
func (l *lease) runOut(ctx context.Context) {
	_ = l.inTime(ctx, func(context.Context) error { l.haltRenewing(); return nil })
}

// end tells others that nothing runs here. The lease is deleted only once no
// renewal is on its way, which would bring it back.
func (l *lease) end(ctx context.Context) error {
	return l.inTime(ctx, func(ctx context.Context) error {
		if !l.haltRenewing() {
			return nil
		}
		var b store.Batch
		b.Delete(l.key())
		_, err := l.store.Apply(ctx, &b)
		return err
	})
}

// inTime waits for something that the store may hold up, for Limits.Record at
// most. What takes longer is left behind.
func (l *lease) inTime(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// alive reports whether the Runner that began an effect may still be at it.
func (l *lease) alive(ctx context.Context, owner string) (bool, error) {
	if owner == l.owner {
		return false, nil // the caller is in its place, so it is not running here
	}
	item, ok, err := l.store.Get(ctx, store.Key("runner", owner))
	if process := string(item.Value); ok && process != "" && process != l.process && l.dead != nil && l.dead(process) {
		ok = false
	}
	return ok, err
}
