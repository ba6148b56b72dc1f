package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	burst  = 20              // failed attempts at once
	refill = 2 * time.Second // for one more

	mostKnown = 4096 // of whom, or of where from, the limits are remembered
)

// A Rate is how often one principal may ask, and how much of it is answered
// beside each other. The zero Rate sets no limit.
type Rate struct {
	Requests float64 // a second, in the long run; zero: no limit
	Burst    int     // in quick succession, after a pause; zero: as many as in a second
	Open     int     // at the same time, streams with them; zero: no limit
}

// A Pace says when it is the turn of the next request of one caller.
type Pace interface {
	// Wait returns when it is the turn of a request. If that would take longer than
	// most, it does not count the request and returns how long it would take. The error
	// is that of ctx, if the caller has gone, or why no turn can be had.
	Wait(ctx context.Context, most time.Duration) (time.Duration, error)
}

// limits count requests and failures. A caller that is forgotten because there
// are too many starts from zero.
type limits struct {
	rate     Rate
	open     inFlight
	asked    *recent[asker, Pace]
	paces    func(caller string, r Rate) Pace // nil: of this process alone
	failures *recent[netip.Prefix, *rate.Limiter]
}

// An asker is a principal as the limits tell them apart. Those who decide are
// counted beside their agents: a busy one must not keep a person from saying
// no. Agents with their own tokens are counted separately.
type asker struct {
	tenant, id, agent string
	decides           bool
}

func askerOf(who Identity) asker {
	return asker{who.Principal.Tenant, who.Principal.ID, who.Principal.Agent, who.Decides}
}

func newLimits(r Rate, paces func(caller string, r Rate) Pace) *limits {
	if r.Burst == 0 {
		r.Burst = max(1, int(r.Requests))
	}
	return &limits{
		rate: r, open: inFlight{count: map[asker]int{}}, asked: newRecent[asker, Pace](mostKnown), paces: paces,
		failures: newRecent[netip.Prefix, *rate.Limiter](mostKnown),
	}
}

// queueFor is the longest time that a request over the rate waits for its turn.
// A request that would wait longer is rejected.
const queueFor = 5 * time.Second

// wait returns when it is the request's turn, as [Pace.Wait] does.
func (l *limits) wait(ctx context.Context, who Identity) (time.Duration, error) {
	if l.rate.Requests <= 0 {
		return 0, nil
	}
	by := askerOf(who)
	return l.asked.orMake(by, func() Pace {
		if l.paces != nil {
			return l.paces(fmt.Sprintf("%q %q %q %t", by.tenant, by.id, by.agent, by.decides), l.rate)
		}
		return ownPace{rate.NewLimiter(rate.Limit(l.rate.Requests), l.rate.Burst)}
	}).Wait(ctx, queueFor)
}

// An ownPace counts what this process answers.
type ownPace struct{ limiter *rate.Limiter }

func (p ownPace) Wait(ctx context.Context, most time.Duration) (time.Duration, error) {
	now := time.Now()
	reserved := p.limiter.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	switch {
	case wait <= 0:
		return 0, nil
	case wait > most:
		reserved.CancelAt(now)
		return wait, nil
	}
	turn := time.NewTimer(wait)
	defer turn.Stop()
	select {
	case <-turn.C:
		return 0, nil
	case <-ctx.Done():
		reserved.Cancel()
		return 0, ctx.Err()
	}
}

// An inFlight counts what is being answered.
type inFlight struct {
	mu    sync.Mutex
	count map[asker]int
}

// enter counts one more request of who, until leave is called. Where they have
// as many open as they may, it counts nothing, and leave is nil.
func (l *limits) enter(who Identity) (leave func()) {
	if l.rate.Open <= 0 {
		return func() {}
	}
	by := askerOf(who)
	l.open.mu.Lock()
	defer l.open.mu.Unlock()
	if l.open.count[by] >= l.rate.Open {
		return nil
	}
	l.open.count[by]++
	return func() {
		l.open.mu.Lock()
		defer l.open.mu.Unlock()
		if l.open.count[by]--; l.open.count[by] == 0 {
			delete(l.open.count, by)
		}
	}
}

// failed reports whether one more failure from there is within its rate. The
// right token is always let in: a stranger's failures do not lock anyone out,
// they only stop being answered and logged one by one.
func (l *limits) failed(r *http.Request) bool {
	return l.failures.orMake(whence(r.RemoteAddr), func() *rate.Limiter { return rate.NewLimiter(rate.Every(refill), burst) }).Allow()
}

// whence returns the network that a request came from: of the newer addresses one
// machine has a whole range. What a proxy says of others is not believed.
func whence(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
}
