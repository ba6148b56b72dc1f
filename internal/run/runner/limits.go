package runner

import (
	"errors"
	"time"
)

// Limits bound what a Runner does. A zero field means the default in brackets;
// negative ones are refused.
type Limits struct {
	Concurrent   int // calls that run at once [64]
	PerExtension int // of one extension [16]

	// PerPrincipal and PerTenant are how many calls of one principal, with all that
	// works for it, and of one tenant run at once [any number].
	PerPrincipal, PerTenant int

	// Queue is how many calls wait at most [4096], and QueuePerExtension how
	// many of one extension [1024], so that none can fill the queue for all.
	Queue, QueuePerExtension int

	// Wait is how long a call waits in the queue [as long as its caller].
	Wait time.Duration

	Timeout    time.Duration // of a call that asks for none [300 s]
	MaxTimeout time.Duration // whatever is asked for [Timeout]
	Grace      time.Duration // for an executor to return once its time is over [5 s]
	Drain      time.Duration // that Close waits for calls before it stops them [30 s]
	Slow       time.Duration // calls that take longer are recorded as slow [5 s]
	Record     time.Duration // for the closing record, once a call has ended [10 s]

	ArgumentBytes int // of one call's arguments [1 MiB]
	ArgumentDepth int // levels of lists and objects [64]

	Inline    int // bytes of text that a result holds; longer is kept with a handle [20,000]
	DataBytes int // of one image or sound in a result [8 MiB]

	Remember time.Duration // how long an effect's result is kept [24 h]
	Lease    time.Duration // silence after which another process counts as dead [6 s]
}

// Always is a [Config.Limits] that never changes: Limits{…}.Always.
func (l Limits) Always() Limits { return l }

func (l Limits) filled() (Limits, error) {
	for _, n := range []*int{&l.Concurrent, &l.PerExtension, &l.PerPrincipal, &l.PerTenant, &l.Queue, &l.QueuePerExtension, &l.ArgumentBytes, &l.ArgumentDepth, &l.Inline, &l.DataBytes} {
		if *n < 0 {
			return l, errors.New("a limit is negative; omit it to use the default")
		}
	}
	for _, d := range []*time.Duration{&l.Wait, &l.Timeout, &l.MaxTimeout, &l.Grace, &l.Drain, &l.Slow, &l.Record, &l.Remember, &l.Lease} {
		if *d < 0 {
			return l, errors.New("a limit is negative; omit it to use the default")
		}
	}
	l.Concurrent = or(l.Concurrent, 64)
	l.PerExtension = min(or(l.PerExtension, 16), l.Concurrent)
	l.Queue = or(l.Queue, 4096)
	l.QueuePerExtension = min(or(l.QueuePerExtension, 1024), l.Queue)
	l.Timeout = or(l.Timeout, 300*time.Second)
	l.MaxTimeout = or(l.MaxTimeout, l.Timeout)
	l.Grace = or(l.Grace, 5*time.Second)
	l.Drain = or(l.Drain, 30*time.Second)
	l.Slow = or(l.Slow, 5*time.Second)
	l.Record = or(l.Record, 10*time.Second)
	l.ArgumentBytes = or(l.ArgumentBytes, 1<<20)
	l.ArgumentDepth = or(l.ArgumentDepth, 64)
	l.Inline = or(l.Inline, 20_000)
	l.DataBytes = or(l.DataBytes, 8<<20)
	l.Remember = or(l.Remember, 24*time.Hour)
	l.Lease = or(l.Lease, 6*time.Second)
	return l, nil
}

// bounds returns the limits of a call that begins. Ones that are refused change
// nothing.
func (r *Runner) bounds() Limits {
	l, err := r.cfg.Limits().filled()
	if err != nil {
		return r.limits
	}
	l.Grace, l.Drain, l.Record, l.Lease = r.limits.Grace, r.limits.Drain, r.limits.Record, r.limits.Lease
	return l
}

func or[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// timeout returns the time that a call has: what the recipe or the call asks for
// can lower it, and raise it up to MaxTimeout only where the recipe does.
func (l Limits) timeout(recipe, asked time.Duration) time.Duration {
	out := min(l.Timeout, l.MaxTimeout)
	if recipe > 0 {
		out = min(recipe, l.MaxTimeout)
	}
	if asked > 0 {
		out = min(out, asked)
	}
	return out
}
