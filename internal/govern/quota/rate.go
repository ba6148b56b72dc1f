package quota

import (
	"context"
	"errors"
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
	waiting int // how many wait for their turn
	turns   int // rises when the turns that were taken no longer count
	news    *news
}

// news is what those who wait for a share wait for.
type news struct {
	done chan struct{} // closed when there is a share, or none can be had
	err  error         // why; set before
}

// A turn is one of what a process may do.
type turn struct {
	*rate.Reservation
	of int // see Rate.turns
}

// Rate returns the rate of one of a kind of things, such as a principal or a host. It is
// the same one as long as it is used.
func (q *Quota) Rate(kind, of string, perSecond float64, burst int) *Rate {
	key := name(kind, of)
	burst = max(1, burst)
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.shares[key]; s != nil && s.rate != nil && s.rate.perSecond == perSecond && s.rate.burst == burst {
		return s.rate
	}
	return &Rate{
		quota: q, key: key, perSecond: perSecond, burst: burst, news: &news{done: make(chan struct{})},
		free: rate.NewLimiter(rate.Limit(perSecond/alone), max(1, burst/alone)),
	}
}

var errNoAnswer = errors.New("it did not answer in time")

// Wait returns when it is the caller's turn. If that would take longer than most, it counts
// nothing and returns how long it would take. The error is that of ctx, or why this process
// has no share.
func (r *Rate) Wait(ctx context.Context, most time.Duration) (time.Duration, error) {
	until := time.Now().Add(most)
	for {
		one, share := r.reserve(time.Now())
		var wait time.Duration
		var told <-chan struct{}
		if one != nil {
			if wait = one.Delay(); wait <= 0 {
				return 0, nil
			}
			if wait > time.Until(until) {
				one.Cancel()
				return wait, nil
			}
		} else { // there is no share yet
			if wait = time.Until(until); wait <= 0 {
				if !r.quota.known(r.key) {
					return 0, errNoAnswer
				}
				return time.Second, nil // others use all of it
			}
			told = share.done
		}
		r.queue(1)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-told:
		case <-ctx.Done():
		}
		timer.Stop()
		counts := one != nil && r.counts(one)
		r.queue(-1)
		switch {
		case ctx.Err() != nil:
			if one != nil {
				one.Cancel()
			}
			return 0, ctx.Err()
		case counts:
			return 0, nil
		case one == nil && isClosed(told) && share.err != nil:
			return 0, share.err
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// counts reports whether a turn is still one: it is not, once this process has a smaller
// share than when the turn was taken, or none.
func (r *Rate) counts(one *turn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	limit, _ := r.want()
	if may := min(r.quota.may(r.key), limit); may < r.set {
		r.apply(time.Now(), may, limit, false)
	}
	return one.of == r.turns
}

// reserve takes the next turn of this process. If there is no share, it returns the news
// to wait for.
func (r *Rate) reserve(now time.Time) (*turn, *news) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.often = r.often*math.Exp(-now.Sub(r.asked).Seconds()) + 1
	r.asked = now
	if r.leased == nil || r.set == 0 {
		one := r.free.ReserveN(now, 1)
		if one.DelayFrom(now) <= 0 {
			return &turn{one, r.turns}, nil
		}
		one.CancelAt(now)
	}
	limit, want := r.want()
	may, first := r.quota.useRate(r, limit, max(want, 1))
	if may != r.set || r.leased == nil && may > 0 {
		r.apply(now, may, limit, first)
	}
	if may > 0 {
		return &turn{r.leased.ReserveN(now, 1), r.turns}, nil
	}
	return nil, r.news
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
		r.quota.useRate(r, limit, want)
	}
}

// apply takes in another share. What was saved up goes with the part that is given away; a
// part that comes from others begins with nothing saved. If those who wait have turns of a
// larger share, they take other ones.
func (r *Rate) apply(now time.Time, may, limit int, first bool) {
	part := rate.Limit(float64(may) / unit)
	burst := 0
	if may > 0 {
		burst = max(1, r.burst*may/limit)
	}
	if may < r.set && r.waiting > 0 {
		r.leased, first = nil, false
		r.turns++
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
	r.news.err = err
	close(r.news.done)
	r.news = &news{done: make(chan struct{})}
}

// useRate is use for a rate: nothing says when its use ends. It reports also whether no
// process had a share of it for long when this one began. The lock of r is held.
func (q *Quota) useRate(r *Rate, limit, want int) (may int, first bool) {
	may = q.use(r.key, limit, 0, want, r.told)
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.shares[r.key]; s != nil {
		s.fleeting, s.rate, first = r.waiting == 0, r, s.first
	}
	return may, first
}

// may returns what may be used of a limit now.
func (q *Quota) may(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.shares[key]; s != nil {
		return s.now(time.Now())
	}
	return 0
}

// known reports whether the store has a share of this process.
func (q *Quota) known(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[key]
	return s != nil && s.known
}
