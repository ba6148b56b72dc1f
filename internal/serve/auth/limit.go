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
	most     int // requests of one asker at the same time; zero: any number
	open     inFlight
	asked    *pacer // of each asker
	tenants  *pacer // of all of one tenant
	failures *recent[netip.Prefix, *rate.Limiter]
}

// A pacer has the paces of callers, or of tenants.
type pacer struct {
	setting, of string
	rate        Rate
	by          func(asker) asker // whose requests are counted together
	paces       *recent[asker, Pace]
	make        func(caller string, r Rate) Pace // nil: of this process alone
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

func newLimits(one, tenant Rate, paces func(caller string, r Rate) Pace) *limits {
	return &limits{
		most: one.Open, open: inFlight{count: map[asker]int{}}, failures: newRecent[netip.Prefix, *rate.Limiter](mostKnown),
		asked: newPacer("serve.rate", "principal", one, func(a asker) asker { return a }, paces),
		tenants: newPacer("serve.tenantRate", "tenant", tenant, func(a asker) asker {
			return asker{tenant: a.tenant, decides: a.decides}
		}, paces),
	}
}

func newPacer(setting, of string, r Rate, by func(asker) asker, paces func(caller string, r Rate) Pace) *pacer {
	if r.Burst == 0 {
		r.Burst = max(1, int(r.Requests))
	}
	return &pacer{setting: setting, of: of, rate: r, by: by, paces: newRecent[asker, Pace](mostKnown), make: paces}
}

// queueFor is the longest time that a request over the rate waits for its turn.
// A request that would wait longer is rejected.
const queueFor = 5 * time.Second

// wait returns when it is the request's turn, as [Pace.Wait] does.
func (p *pacer) wait(ctx context.Context, who Identity, most time.Duration) (time.Duration, error) {
	if p.rate.Requests <= 0 {
		return 0, nil
	}
	by := p.by(askerOf(who))
	return p.paces.orMake(by, func() Pace {
		switch {
		case p.make == nil:
			return ownPace{rate.NewLimiter(rate.Limit(p.rate.Requests), p.rate.Burst)}
		case p.of == "tenant":
			return p.make(fmt.Sprintf("tenant %q %t", by.tenant, by.decides), p.rate)
		}
		return p.make(fmt.Sprintf("%q %q %q %t", by.tenant, by.id, by.agent, by.decides), p.rate)
	}).Wait(ctx, most)
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
	if l.most <= 0 {
		return func() {}
	}
	by := askerOf(who)
	l.open.mu.Lock()
	defer l.open.mu.Unlock()
	if l.open.count[by] >= l.most {
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
