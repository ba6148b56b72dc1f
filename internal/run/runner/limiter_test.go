package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"

	"pgregory.net/rapid"
)

// TestLimiterRapid drives a limiter through arrivals, departures, withdrawals and
// other limits and compares it with what must hold of any queue: never over a limit,
// no call waits while there is room, the calls of a caller are served in their order,
// and no call is lost.
func TestLimiterRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(t *rapid.T, l Limits) Limits {
			l.Concurrent, l.PerExtension = rapid.IntRange(1, 6).Draw(t, "concurrent"), rapid.IntRange(1, 4).Draw(t, "per extension")
			l.PerPrincipal, l.PerTenant = rapid.IntRange(0, 3).Draw(t, "per principal"), rapid.IntRange(0, 4).Draw(t, "per tenant")
			return l
		}
		now := draw(t, Limits{Queue: rapid.IntRange(1, 8).Draw(t, "queue")})
		now.QueuePerExtension = rapid.IntRange(1, now.Queue).Draw(t, "queue per extension")
		now, err := now.filled()
		if err != nil {
			t.Fatal(err)
		}
		g := newLimiter(func() Limits { return now }, nil)
		type call struct {
			*waiter
			ext string
			who whose
		}
		var running, waiting []call
		count := func(calls []call, like func(call) bool) (n int) {
			for _, c := range calls {
				if like(c) {
					n++
				}
			}
			return n
		}
		room := func(c call) bool {
			return len(running) < now.Concurrent && count(running, func(o call) bool { return o.ext == c.ext }) < now.PerExtension &&
				(now.PerPrincipal == 0 || count(running, func(o call) bool { return o.who.principal == c.who.principal }) < now.PerPrincipal) &&
				(now.PerTenant == 0 || count(running, func(o call) bool { return o.who.tenant == c.who.tenant }) < now.PerTenant)
		}
		// settle moves those who were admitted, and says how many were refused.
		settle := func() (refused int) {
			all := waiting
			waiting = nil
			for _, c := range all {
				switch {
				case c.err != nil:
					refused++
				case !c.admitted:
					waiting = append(waiting, c)
				case count(waiting, func(o call) bool { return o.ext == c.ext && o.who == c.who }) > 0:
					t.Fatalf("%+v: a later call of %s was served first", c.who, c.ext)
				default:
					running = append(running, c)
				}
			}
			return refused
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				tenant := rapid.SampledFrom([]string{"s", "t"}).Draw(t, "tenant")
				c := call{ext: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "extension")}
				c.who = whose{tenant: tenant, principal: tenant + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "principal"), session: rapid.SampledFrom([]string{"", "b"}).Draw(t, "session")}
				had := room(c)
				full := len(waiting) >= now.Queue || count(waiting, func(o call) bool { return o.ext == c.ext }) >= now.QueuePerExtension
				w, err := g.ask(c.ext, c.who)
				c.waiter = w
				switch refused := settle(); {
				case had && w == nil && err == nil && refused == 0:
					running = append(running, c)
				case !had && w != nil && err == nil && (refused == 0) == !full && refused <= 1: // another's newest made room
					waiting = append(waiting, c)
				case !had && full && err != nil && refused == 0:
					if e, ok := errors.AsType[*capability.Error](err); !ok || e.Kind != capability.Unavailable || e.Rule == "" {
						t.Fatalf("ask() = %v, want a refusal that names its knob", err)
					}
				default:
					t.Fatalf("ask() = %v, %v; room: %t, queue full: %t, %d refused", w, err, had, full, refused)
				}
			},
			"leave": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("none runs")
				}
				i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				c := running[i]
				running = slices.Delete(running, i, i+1)
				g.leave(c.ext, c.who)
				settle()
			},
			"withdraw": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip("none waits")
				}
				i := rapid.IntRange(0, len(waiting)-1).Draw(t, "which")
				if !g.withdraw(waiting[i].waiter) {
					t.Fatal("withdraw() = false of a call that waits")
				}
				waiting = slices.Delete(waiting, i, i+1)
			},
			"limits": func(t *rapid.T) {
				now = draw(t, now)
				g.renew()
				settle()
			},
			"": func(t *rapid.T) {
				for _, c := range waiting {
					if room(c) {
						t.Fatalf("a call of %q for %s waits while there is room", c.who.principal, c.ext)
					}
				}
				if g.running != len(running) || g.line.waiting != len(waiting) || len(running)+len(waiting) == 0 && g.known() > 0 {
					t.Fatalf("%d run and %d wait, of %d loads; want %d and %d", g.running, g.line.waiting, g.known(), len(running), len(waiting))
				}
			},
		})
	})
}

// known returns how many loads are kept.
func (g *limiter) known() (n int) {
	for _, loads := range g.loads {
		n += len(loads)
	}
	return n
}

// TestWaitsTooLong: the refusal of a call that waited for limits.wait names the limit.
func TestWaitsTooLong(t *testing.T) {
	for knob, limits := range map[string]Limits{
		"limits.perPrincipal": {PerPrincipal: 1}, "limits.perTenant": {PerTenant: 1}, "limits.perExtension": {PerExtension: 1}, "limits.concurrent": {Concurrent: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			hold := make(chan struct{})
			x := tool{invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) { <-hold; return echo(ctx, c) }}
			limits.Wait = time.Minute
			r := newRig(t, x, func(c *Config) { c.Limits = limits.Always })
			call := callOf("look", `{"text":"a"}`)
			call.Principal.Tenant = "t"
			ran := make(chan error, 1)
			go func() { _, err := r.Invoke(t.Context(), call); ran <- err }()
			synctest.Wait()
			_, err := r.Invoke(t.Context(), call)
			e := wantKind(t, err, capability.Unavailable)
			if e.Rule != "limits.wait" || !strings.Contains(e.Error(), knob+" is 1, and as many calls are running") || !strings.Contains(e.Fix, knob) {
				t.Errorf("a call that waited too long: %v (%s), want %s", e, e.Fix, knob)
			}
			close(hold)
			if err := <-ran; err != nil {
				t.Errorf("the call that ran: %v", err)
			}
		})
	}
}

// busy makes a limiter with one call that runs, of the extension x.
func busy(t *testing.T, limits Limits) *limiter {
	t.Helper()
	l, err := limits.filled()
	if err != nil {
		t.Fatal(err)
	}
	g := newLimiter(l.Always, nil)
	if w, err := g.ask("x", whose{}); w != nil || err != nil {
		t.Fatal(w, err)
	}
	return g
}

// mustWait asks for a place and must wait for it.
func mustWait(t *testing.T, g *limiter, ext string, who whose) *waiter {
	t.Helper()
	w, err := g.ask(ext, who)
	if w == nil || err != nil {
		t.Fatalf("ask(%s, %+v) = %v, %v, want to wait", ext, who, w, err)
	}
	return w
}

// TestFairTurns: principals take turns, then the sessions of a principal, then
// the extensions of a session; within an extension, the oldest call is first.
func TestFairTurns(t *testing.T) {
	g := busy(t, Limits{Concurrent: 1, PerExtension: 1})
	type waits struct {
		*waiter
		name, ext string
		who       whose
	}
	var all []*waits
	add := func(n int, principal, session, ext string) {
		for i := range n {
			who := whose{principal: principal, session: session}
			w := mustWait(t, g, ext, who)
			all = append(all, &waits{w, fmt.Sprintf("%s/%s/%s%d", principal, session, ext, i), ext, who})
		}
	}
	add(50, "ann", "flood", "x")
	add(2, "ann", "flood", "y")
	add(2, "ann", "quick", "x")
	add(2, "bob", "quick", "x")
	var order []string
	last, of := "x", whose{}
	for range len(all) {
		g.leave(last, of)
		for i, w := range all {
			if w != nil && w.admitted {
				order, last, of, all[i] = append(order, w.name), w.ext, w.who, nil
			}
		}
	}
	want := []string{
		"ann/flood/x0", "bob/quick/x0", "ann/quick/x0", "bob/quick/x1", "ann/flood/y0", "ann/quick/x1", "ann/flood/x1", "ann/flood/y1", "ann/flood/x2",
	}
	if !slices.Equal(order[:len(want)], want) || len(order) != 56 {
		t.Errorf("%d were served, first %q, want 56 and %q", len(order), order[:len(want)], want)
	}
	if g.leave(last, of); g.running != 0 || g.line.waiting != 0 || g.known() != 0 || len(g.line.order) != 0 || len(g.line.by) != 0 {
		t.Errorf("the limiter keeps %d loads and %d lines without a call", g.known(), len(g.line.by))
	}
}

// TestManySessionsAreOneCaller: a program that spreads its calls over many sessions
// gets no more turns than the person it works for, and cannot fill the queue.
func TestManySessionsAreOneCaller(t *testing.T) {
	g := busy(t, Limits{Concurrent: 1, PerExtension: 1, Queue: 20, QueuePerExtension: 20})
	for i := range 20 {
		mustWait(t, g, "x", whose{principal: "ann", caller: "agent", session: fmt.Sprint(i)})
	}
	if _, err := g.ask("x", whose{principal: "ann", caller: "agent", session: "one more"}); err == nil {
		t.Error("the agent's 21st call waits in a queue of 20")
	}
	w := mustWait(t, g, "x", whose{principal: "ann", caller: "person", session: "s"})
	g.leave("x", whose{})
	g.leave("x", whose{principal: "ann"})
	if !w.admitted {
		t.Error("the person's call was not the second")
	}
}

// TestQueueIsShared: a session that filled the queue does not keep others out.
// Its newest calls are rejected instead, until all sessions have the same
// number.
func TestQueueIsShared(t *testing.T) {
	for _, tt := range []struct {
		limits Limits
		knob   string
	}{
		{Limits{Concurrent: 1, Queue: 4}, "limits.queue"},
		{Limits{Concurrent: 1, Queue: 100, QueuePerExtension: 4}, "limits.queuePerExtension"},
	} {
		g := busy(t, tt.limits)
		var flood, other []*waiter
		for range 4 {
			flood = append(flood, mustWait(t, g, "x", whose{principal: "ann", session: "flood"}))
		}
		refused := func(err error) bool {
			e, ok := errors.AsType[*capability.Error](err)
			return ok && e.Rule == tt.knob
		}
		if _, err := g.ask("x", whose{principal: "ann", session: "flood"}); !refused(err) {
			t.Errorf("%s: one more of the flood = %v, want a refusal", tt.knob, err)
		}
		for range 2 {
			other = append(other, mustWait(t, g, "x", whose{principal: "ann", session: "other"}))
		}
		if _, err := g.ask("x", whose{principal: "ann", session: "other"}); !refused(err) {
			t.Errorf("%s: a third, where both have two = %v, want a refusal", tt.knob, err)
		}
		if flood[0].err != nil || flood[1].err != nil || !refused(flood[2].err) || !refused(flood[3].err) || g.line.waiting != 4 {
			t.Errorf("%s: the flood has %v, %v, %v, %v; want its two newest refused", tt.knob, flood[0].err, flood[1].err, flood[2].err, flood[3].err)
		}
		for _, w := range append(flood[:2], other...) {
			if !g.withdraw(w) {
				t.Errorf("%s: withdraw() = false of one who waits", tt.knob)
			}
		}
		if g.leave("x", whose{}); g.line.waiting != 0 || g.known() != 0 {
			t.Errorf("%s: %d wait and %d loads are left, want none", tt.knob, g.line.waiting, g.known())
		}
	}
}

// TestFiveHundred: 500 calls at once, of five extensions, one of which floods;
// bounded and complete.
func TestFiveHundred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		per := map[string]int{}
		x := tool{schema: `{"type":"object","additionalProperties":true}`, invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			mu.Lock()
			now++
			most = max(most, now)
			per[c.Session]++
			if per[c.Session] > 4 {
				t.Errorf("%d calls of %s at once, want at most 4", per[c.Session], c.Session)
			}
			mu.Unlock()
			time.Sleep(time.Second) // the bubble's clock
			mu.Lock()
			now--
			per[c.Session]--
			mu.Unlock()
			return echo(ctx, c)
		}}
		r := newRig(t, x, func(c *Config) {
			c.Limits = Limits{Concurrent: 10, PerExtension: 4, Queue: 500, QueuePerExtension: 500}.Always
			inner := c.Resolve
			c.Resolve = func(ctx context.Context, call capability.Call) (Resolved, error) {
				out, err := inner(ctx, call)
				out.Extension = call.Session // one extension for each session here
				return out, err
			}
		})
		var wg sync.WaitGroup
		done := 0
		start := func(ext string, n int) {
			for i := range n {
				wg.Go(func() {
					call := callOf("look", fmt.Sprintf(`{"n":%d}`, i))
					call.Session = ext
					res, err := r.Invoke(t.Context(), call)
					if err != nil || res.Parts[0].Text != string(call.Arguments) {
						t.Errorf("Invoke(%s %d) = %v, %v", ext, i, res.Parts, err)
					}
					mu.Lock()
					done++
					mu.Unlock()
				})
			}
		}
		start("flood", 440)
		synctest.Wait()
		for _, ext := range []string{"b", "c", "d", "e"} {
			start(ext, 15)
		}
		synctest.Wait()
		if l := r.Load(); l.Running != 10 || l.Waiting != 490 {
			t.Errorf("Load() = %+v, want 10 running and 490 waiting", l)
		}
		wg.Wait()
		if done != 500 || most != 10 {
			t.Errorf("%d of 500 calls ended, at most %d at once, want all and 10", done, most)
		}
		started, ended := 0, 0
		for _, rec := range r.log.all() {
			switch rec.Event {
			case audit.Started:
				started++
			case audit.Executed:
				ended++
			}
		}
		if started != 500 || ended != 500 {
			t.Errorf("%d before records and %d after, want 500 each", started, ended)
		}
	})
}

// TestGiveUpInQueue: a caller who gives up leaves no trace in the queue, and
// nothing of his runs.
func TestGiveUpInQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		runs := 0
		x := tool{invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			runs++
			<-hold
			return echo(ctx, c)
		}}
		r := newRig(t, x, func(c *Config) { c.Limits = Limits{Concurrent: 1}.Always })
		call := callOf("look", `{"text":"a"}`)
		go r.Invoke(t.Context(), call)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 1)
		go func() { _, err := r.Invoke(ctx, call); errs <- err }()
		synctest.Wait()
		cancel()
		err := <-errs
		if wantKind(t, err, capability.Unavailable); !errors.Is(err, context.Canceled) {
			t.Errorf("Invoke() error = %v, want one that is context.Canceled", err)
		}
		if rec := r.log.last(t); rec.Status != audit.Cancelled {
			t.Errorf("recorded status = %s, want CANCELLED", rec.Status)
		}
		close(hold)
		synctest.Wait()
		if l := r.Load(); l != (Load{}) || runs != 1 {
			t.Errorf("Load() = %+v after %d runs, want nothing left after 1", l, runs)
		}
	})
}
