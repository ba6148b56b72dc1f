package runner

import (
	"context"
	"sync"
	"time"

	"ken/internal/store"
)

// lease shows other processes that this Runner is alive. It begins with the
// first claim.
type lease struct {
	mu   sync.Mutex
	stop context.CancelFunc // nil: not begun, or ended
	done chan struct{}
}

func (r *Runner) leaseKey() string { return store.Key("runner", r.me) }

func (r *Runner) beginLease(ctx context.Context) error {
	l := &r.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		return nil
	}
	if err := r.renew(ctx); err != nil {
		return err
	}
	renewing, stop := context.WithCancel(context.Background())
	l.stop, l.done = stop, make(chan struct{})
	go r.keepLease(renewing, l.done)
	return nil
}

func (r *Runner) renew(ctx context.Context) error {
	var b store.Batch
	b.PutFor(r.leaseKey(), []byte(r.cfg.Process), r.limits.Lease)
	_, err := r.cfg.Effects.Apply(ctx, &b)
	return err
}

// keepLease renews until the Runner closes. If that does not work for long
// enough, others take our calls for unknown, which is the safe mistake: they
// do not run them.
func (r *Runner) keepLease(ctx context.Context, done chan struct{}) {
	defer close(done)
	tick := time.NewTicker(r.limits.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = r.renew(ctx)
		}
	}
}

// haltRenewing ends the renewing, and reports whether there was any. It waits for
// the store, which once it writes heeds no context.
func (r *Runner) haltRenewing() bool {
	l := &r.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		return false
	}
	l.stop()
	<-l.done
	l.stop = nil
	return true
}

// stopLease lets the lease run out: until then others are told that its calls
// run.
func (r *Runner) stopLease(ctx context.Context) {
	_ = r.inTime(ctx, func(context.Context) error { r.haltRenewing(); return nil })
}

// endLease tells others that nothing runs here. The lease is deleted only once
// no renewal is on its way, which would bring it back.
func (r *Runner) endLease(ctx context.Context) error {
	return r.inTime(ctx, func(ctx context.Context) error {
		if !r.haltRenewing() {
			return nil
		}
		var b store.Batch
		b.Delete(r.leaseKey())
		_, err := r.cfg.Effects.Apply(ctx, &b)
		return err
	})
}

// inTime waits for something that the store may hold up, for Limits.Record at
// most. What takes longer is left behind.
func (r *Runner) inTime(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Record)
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
func (r *Runner) alive(ctx context.Context, owner string) (bool, error) {
	if owner != r.me {
		item, ok, err := r.cfg.Effects.Get(ctx, store.Key("runner", owner))
		if process := string(item.Value); ok && process != "" && process != r.cfg.Process && r.cfg.Dead != nil && r.cfg.Dead(process) {
			ok = false
		}
		return ok, err
	}
	return false, nil // the caller is in its place, so it is not running here
}

// takeOff waits until no other call of this Runner has the effect, and then
// has it: a call that is made again while it runs gets the first one's result.
func (r *Runner) takeOff(ctx context.Context, c *claim) error {
	for {
		r.mu.Lock()
		other, busy := r.flights[c.key]
		if !busy {
			c.flight = make(chan struct{})
			r.flights[c.key] = c.flight
			r.mu.Unlock()
			return nil
		}
		r.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return gaveUp(ctx)
		}
	}
}

// land lets others have the effect.
func (r *Runner) land(c *claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.flight != nil {
		delete(r.flights, c.key)
		close(c.flight)
		c.flight = nil
	}
}
