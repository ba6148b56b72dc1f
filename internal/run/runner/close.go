package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ken/capability"
)

// Unended is the error of a [Runner.Close] that left something running. Each
// call gets its one result all the same: one that was stopped says that it was
// cancelled, and whether it had its effect is unknown where it had begun.
type Unended struct {
	Calls []Running // oldest first
	Cause error
}

func (u *Unended) Error() string {
	var names []string
	for _, c := range u.Calls {
		names = append(names, fmt.Sprintf("%s (%s, since %s)", c.Target, c.State, c.Began.UTC().Format(time.RFC3339)))
	}
	return "close runner: still running: " + strings.Join(names, ", ") + ": " + u.Cause.Error()
}

func (u *Unended) Unwrap() error { return u.Cause }

var (
	errClosing = errors.New("stopped, because Ken is closing")
	errIgnored = errors.New("calls did not stop when told to")
)

func (r *Runner) enter(t *trip) *capability.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &capability.Error{
			Kind: capability.Unavailable, Op: "call", Target: string(t.call.Target),
			Err: errors.New("the runner is closed"), Fix: "call again when it runs",
		}
	}
	r.live[t.id] = t
	return nil
}

func (r *Runner) leave(t *trip) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, t.id)
	if t.abandon != nil {
		r.left[t.id] = t.seen()
		go r.forget(t.id, t.abandon)
	}
	if r.closed && len(r.live) == 0 {
		close(r.idle)
	}
}

// forget waits for an executor that a call was ended without.
func (r *Runner) forget(id uint64, gone <-chan struct{}) {
	<-gone
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.left, id)
}

// Close takes no more calls and waits for those that run until ctx ends, which
// does not stop them: their callers can. Where ctx does not end, it waits for
// Limits.Drain, then stops what still runs, and gives it the time that stopping
// may take: twice Limits.Grace, and Limits.Record. Then the store has twice
// Limits.Record to keep what calls came to, where all have ended, and once to end
// the lease. After that it waits no more.
//
// What runs on is named in an *[Unended]: calls that have not ended, and the
// executors that their calls were ended without. A call that was stopped can
// begin nothing any more.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		if len(r.live) == 0 {
			close(r.idle)
		}
	}
	r.mu.Unlock()
	err := await(ctx, r.idle, r.limits.Drain)
	if errors.Is(err, errIgnored) {
		r.Stop(errClosing, func(Running) bool { return true })
		if err = await(ctx, r.idle, 2*r.limits.Grace+r.limits.Record); errors.Is(err, errIgnored) {
			r.stopLease(ctx)
		}
	}
	if err != nil {
		return &Unended{Calls: r.unended(), Cause: err}
	}
	unwritten := r.catchUp(ctx)
	settled := make(chan struct{})
	go func() { r.settling.Wait(); close(settled) }()
	if err = await(ctx, settled, 2*r.limits.Record); err != nil { // each has its own limit
		err = fmt.Errorf("close runner: what calls came to is not kept yet: %w", err)
		r.stopLease(ctx)
	} else {
		err = r.endLease(ctx)
	}
	if left := r.unended(); len(left) > 0 {
		err = errors.Join(&Unended{Calls: left, Cause: errIgnored}, err)
	}
	if unwritten != nil {
		err = errors.Join(err, unwritten)
	}
	return err
}

// await waits for an end within a time.
func await(ctx context.Context, end <-chan struct{}, most time.Duration) error {
	over := time.NewTimer(most)
	defer over.Stop()
	select {
	case <-end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-over.C:
		return errIgnored
	}
}

// unended returns what runs, with the executors that were left behind, each once.
func (r *Runner) unended() []Running {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.AppendSeq(r.running(), maps.Values(r.left))
	slices.SortFunc(out, older)
	return out
}
