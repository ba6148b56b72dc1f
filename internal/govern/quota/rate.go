package quota

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// unit is how a rate is divided: in thousandths.
	unit = 1000

	// alone is the part of a rate that a process may use without a share of it: so what
	// is seldom asked for never waits for the store, and costs it nothing.
	alone = 100

	// fleeting is how long a need for a rate counts that is not repeated.
	fleeting = time.Second
)

// A Rate lets one process do its part of what all processes together may do in a second.
// They do at most burst at once and perSecond in the long run, and each process but one may
// add a hundredth of that. Its methods are safe for concurrent use.
type Rate struct {
	quota     *Quota
	key       string
	perSecond float64
	burst     int

	mu      sync.Mutex
	free    *rate.Limiter
	leased  *rate.Limiter // nil: there never was a share
	set     int           // the share that leased has
	often   float64       // how often it was asked for in the last second, about
	asked   time.Time
	waiting int           // how many wait for their turn
	changed chan struct{} // closed when the share changed, or cannot be had
	err     error
}

// Rate returns the rate of one of a kind of things, such as a principal or a host. Keep it
// as long as it is used.
func (q *Quota) Rate(kind, of string, perSecond float64, burst int) *Rate {
	return &Rate{
		quota: q, key: name(kind, of), perSecond: perSecond, burst: max(1, burst), changed: make(chan struct{}),
		free: rate.NewLimiter(rate.Limit(perSecond/alone), max(1, burst/alone)),
	}
}

// Wait returns when it is the caller's turn. If that would take longer than most, it counts
// nothing and returns how long it would take. The error is that of ctx, or why this process
// has no share.
func (r *Rate) Wait(ctx context.Context, most time.Duration) (time.Duration, error) {
	until := time.Now().Add(most)
	for {
		turn, changed, err := r.reserve(time.Now())
		var wait time.Duration
		switch {
		case err != nil:
			return 0, err
		case turn != nil:
			if wait = turn.Delay(); wait <= 0 {
				return 0, nil
			}
			if wait > time.Until(until) {
				turn.Cancel()
				return wait, nil
			}
			changed = nil
		default: // there is no share yet
			if wait = time.Until(until); wait <= 0 {
				return time.Second, nil
			}
		}
		r.queue(1)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		r.queue(-1)
		switch {
		case ctx.Err() != nil:
			if turn != nil {
				turn.Cancel()
			}
			return 0, ctx.Err()
		case turn != nil:
			return 0, nil
		}
	}
}

// reserve takes one of what this process may do, or returns what tells that it may do more.
func (r *Rate) reserve(now time.Time) (*rate.Reservation, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.often = r.often*math.Exp(-now.Sub(r.asked).Seconds()) + 1
	r.asked = now
	if r.leased == nil || r.set == 0 {
		if one := r.free.ReserveN(now, 1); one.DelayFrom(now) <= 0 {
			return one, nil, nil
		} else {
			one.CancelAt(now)
		}
	}
	limit, want := r.want()
	may, first := r.quota.useRate(r.key, limit, max(want, 1), r.waiting, r.told)
	if may != r.set || r.leased == nil && may > 0 {
		r.apply(now, may, limit, first)
	}
	if may > 0 {
		r.err = nil
		return r.leased.ReserveN(now, 1), nil, nil
	}
	err := r.err
	r.err = nil
	return nil, r.changed, err
}

// want returns the whole rate, and how much of it this process needs: all of it if
// anything waits here.
func (r *Rate) want() (limit, want int) {
	limit = max(1, int(r.perSecond*unit))
	if r.waiting > 0 {
		return limit, limit
	}
	return limit, min(limit, max(limit/16, int(r.often*unit*3/2)))
}

// queue counts those who wait.
func (r *Rate) queue(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.waiting
	r.waiting += n
	if (before == 0) != (r.waiting == 0) {
		limit, want := r.want()
		r.quota.useRate(r.key, limit, want, r.waiting, r.told)
	}
}

// apply takes in another share. What was saved up goes with the part that is given away; a
// part that comes from others begins with nothing saved.
func (r *Rate) apply(now time.Time, may, limit int, first bool) {
	part := rate.Limit(float64(may) / unit)
	burst := 0
	if may > 0 {
		burst = max(1, r.burst*may/limit)
	}
	switch {
	case r.leased == nil && first:
		r.leased = rate.NewLimiter(part, burst)
	case r.leased == nil:
		r.leased = rate.NewLimiter(part, 0)
		fallthrough
	default:
		r.leased.SetLimitAt(now, part)
		r.leased.SetBurstAt(now, burst)
	}
	r.set = may
}

// told wakes those who wait for a share.
func (r *Rate) told(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	close(r.changed)
	r.changed = make(chan struct{})
}

// useRate is use for a rate: nothing says when its use ends. It reports also whether no
// process had a share of it for long when this one began.
func (q *Quota) useRate(key string, limit, want, waiting int, changed func(error)) (may int, first bool) {
	may = q.use(key, limit, 0, want, changed)
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.shares[key]; s != nil {
		s.fleeting, first = waiting == 0, s.first
	}
	return may, first
}
