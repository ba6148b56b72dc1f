package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
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
	errIgnored = errors.New("calls did not stop when cancelled")
)

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
	idle := r.calls.close()
	err := await(ctx, idle, r.limits.Drain)
	if errors.Is(err, errIgnored) {
		r.Stop(errClosing, func(Running) bool { return true })
		if err = await(ctx, idle, 2*r.limits.Grace+r.limits.Record); errors.Is(err, errIgnored) {
			r.effects.lease.runOut(ctx)
		}
	}
	if err != nil {
		return &Unended{Calls: r.calls.unended(), Cause: err}
	}
	unwritten := r.records.catchUp(ctx)
	settled := make(chan struct{})
	go func() { r.effects.settling.Wait(); close(settled) }()
	if err = await(ctx, settled, 2*r.limits.Record); err != nil { // each has its own limit
		err = fmt.Errorf("close runner: the results of some calls are not stored yet: %w", err)
		r.effects.lease.runOut(ctx)
	} else {
		err = r.effects.lease.end(ctx)
	}
	if left := r.calls.unended(); len(left) > 0 {
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
