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

// TestLimiterRapid drives a limiter through arrivals, departures and withdrawals and
// compares it with what must hold of any queue: never over a limit, no call
// waits while there is room, first come first served within an extension,
// turns between them, and no call is lost.
func TestLimiterRapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Concurrent:   rapid.IntRange(1, 4).Draw(t, "concurrent"),
			PerExtension: rapid.IntRange(1, 4).Draw(t, "per extension"),
			Queue:        rapid.IntRange(1, 8).Draw(t, "queue"),
		}
		l.QueuePerExtension = rapid.IntRange(1, l.Queue).Draw(t, "queue per extension")
		l, err := l.filled()
		if err != nil {
			t.Fatal(err)
		}
		g := newLimiter(l.Always, nil)
		running := map[string]int{}
		waiting := map[string][]*waiter{} // by us, in order of arrival
		var served []string               // since the last arrival
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		total := func() (n int) {
			for _, k := range running {
				n += k
			}
			return n
		}
		// settle moves those who were admitted.
		settle := func() {
			for name, line := range waiting {
				for len(line) > 0 && line[0].admitted {
					line = line[1:]
					running[name]++
					served = append(served, name)
				}
				for _, w := range line {
					if w.admitted {
						t.Fatalf("%s: a later call was served first", name)
					}
				}
				waiting[name] = line
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				name := names.Draw(t, "extension")
				served = nil
				w, err := g.ask(name, whose{})
				queued := 0
				for _, line := range waiting {
					queued += len(line)
				}
				room := total() < l.Concurrent && running[name] < l.PerExtension
				full := queued >= l.Queue || len(waiting[name]) >= l.QueuePerExtension
				switch {
				case room:
					if w != nil || err != nil {
						t.Fatalf("ask(%s) = %v, %v, want a place", name, w, err)
					}
					running[name]++
				case full:
					e, ok := errors.AsType[*capability.Error](err)
					if !ok || e.Kind != capability.Unavailable || e.Rule == "" {
						t.Fatalf("ask(%s) = %v, want a refusal that names its knob", name, err)
					}
				default:
					if w == nil || err != nil {
						t.Fatalf("ask(%s) = %v, %v, want to wait", name, w, err)
					}
					waiting[name] = append(waiting[name], w)
				}
			},
			"leave": func(t *rapid.T) {
				var busy []string
				for name, n := range running {
					if n > 0 {
						busy = append(busy, name)
					}
				}
				if len(busy) == 0 {
					t.Skip("nobody runs")
				}
				slices.Sort(busy)
				name := rapid.SampledFrom(busy).Draw(t, "extension")
				running[name]--
				g.leave(name, whose{})
				settle()
			},
			"withdraw": func(t *rapid.T) {
				name := names.Draw(t, "extension")
				line := waiting[name]
				if len(line) == 0 {
					t.Skip("nobody waits")
				}
				served = nil
				i := rapid.IntRange(0, len(line)-1).Draw(t, "which")
				if !g.withdraw(line[i]) {
					t.Fatal("withdraw() = false of somebody who waits")
				}
				waiting[name] = slices.Delete(slices.Clone(line), i, i+1)
			},
			"": func(t *rapid.T) {
				if g.running != total() || g.running > l.Concurrent {
					t.Fatalf("%d run, want %d, at most %d", g.running, total(), l.Concurrent)
				}
				queued := 0
				for name, line := range waiting {
					queued += len(line)
					if running[name] > l.PerExtension {
						t.Fatalf("%s runs %d, at most %d", name, running[name], l.PerExtension)
					}
					if len(line) > 0 && total() < l.Concurrent && running[name] < l.PerExtension {
						t.Fatalf("%s waits while there is room", name)
					}
				}
				if g.line.waiting != queued {
					t.Fatalf("%d wait, want %d", g.line.waiting, queued)
				}
				// While the same extensions wait, none is served twice before
				// another that has room is served once.
				for name, line := range waiting {
					if len(line) == 0 || running[name] >= l.PerExtension || slices.Contains(served, name) {
						continue
					}
					seen := map[string]int{}
					for _, s := range served {
						seen[s]++
					}
					for s, n := range seen {
						if n > 2 {
							t.Fatalf("%s was served %d times while %s had room and waited", s, n, name)
						}
					}
				}
				if n := len(g.loads[byExtension]); n > 3 {
					t.Fatalf("%d loads are kept, want those in use", n)
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

// TestPerPrincipalAndTenant: calls of a principal, or of a tenant, wait when as many run
// as may, whatever they call. Calls of others pass them. Their refusal after limits.wait names
// the setting.
func TestPerPrincipalAndTenant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{
			Concurrent: rapid.IntRange(1, 6).Draw(t, "concurrent"), PerExtension: rapid.IntRange(1, 4).Draw(t, "per extension"),
			PerPrincipal: rapid.IntRange(0, 3).Draw(t, "per principal"), PerTenant: rapid.IntRange(0, 4).Draw(t, "per tenant"),
		}
		now, err := l.filled()
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
		count := func(like func(call) bool) (n int) {
			for _, c := range running {
				if like(c) {
					n++
				}
			}
			return n
		}
		room := func(c call) bool {
			return len(running) < now.Concurrent && count(func(o call) bool { return o.ext == c.ext }) < now.PerExtension &&
				(now.PerPrincipal == 0 || count(func(o call) bool { return o.who.principal == c.who.principal }) < now.PerPrincipal) &&
				(now.PerTenant == 0 || count(func(o call) bool { return o.who.tenant == c.who.tenant }) < now.PerTenant)
		}
		settle := func() {
			waiting = slices.DeleteFunc(waiting, func(c call) bool {
				if c.admitted {
					running = append(running, c)
				}
				return c.admitted
			})
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				tenant := rapid.SampledFrom([]string{"s", "t"}).Draw(t, "tenant")
				c := call{ext: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "extension")}
				c.who = whose{tenant: tenant, principal: tenant + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "principal"), session: rapid.SampledFrom([]string{"", "b"}).Draw(t, "session")}
				had := room(c)
				w, err := g.ask(c.ext, c.who)
				if err != nil || (w == nil) != had {
					t.Fatalf("ask() = %v, %v; room: %t", w, err, had)
				}
				if c.waiter = w; w == nil {
					running = append(running, c)
				} else {
					waiting = append(waiting, c)
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
				now.PerPrincipal, now.PerTenant = rapid.IntRange(0, 3).Draw(t, "per principal"), rapid.IntRange(0, 4).Draw(t, "per tenant")
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

	for _, tt := range []struct {
		limits Limits
		knob   string
	}{
		{Limits{PerPrincipal: 1}, "limits.perPrincipal"}, {Limits{PerTenant: 1}, "limits.perTenant"},
		{Limits{PerExtension: 1}, "limits.perExtension"}, {Limits{Concurrent: 1}, "limits.concurrent"},
	} {
		l, _ := tt.limits.filled()
		g := newLimiter(l.Always, nil)
		who := whose{principal: "ann", tenant: "t"}
		if err := g.enter(t.Context(), "x", who); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errQueueWait)
		e := wantKind(t, g.enter(ctx, "x", who), capability.Unavailable)
		cancel()
		if e.Rule != "limits.wait" || !strings.Contains(e.Error(), tt.knob+" is 1, and as many calls are running") || !strings.Contains(e.Fix, tt.knob) {
			t.Errorf("a call that waited too long: %v (%s), want %s", e, e.Fix, tt.knob)
		}
		g.leave("x", who)
	}
}

// TestRoundRobin: a flood of one extension does not hold up another.
func TestRoundRobin(t *testing.T) {
	l, _ := Limits{Concurrent: 1, PerExtension: 1}.filled()
	g := newLimiter(l.Always, nil)
	if w, err := g.ask("first", whose{}); w != nil || err != nil {
		t.Fatal(w, err)
	}
	var order []string
	var all []*waiter
	var names []string
	add := func(name string) {
		w, err := g.ask(name, whose{})
		if err != nil {
			t.Fatal(err)
		}
		all, names = append(all, w), append(names, name)
	}
	for range 100 {
		add("flood")
	}
	add("other")
	add("third")
	add("other")
	last := "first"
	for range len(all) {
		g.leave(last, whose{})
		for i, w := range all {
			if w != nil && w.admitted {
				order, last, all[i] = append(order, names[i]), names[i], nil
			}
		}
	}
	if got, want := fmt.Sprint(order[:6]), "[flood other third flood other flood]"; got != want {
		t.Errorf("served %s, want %s", got, want)
	}
	if len(order) != len(names) {
		t.Errorf("%d of %d were served", len(order), len(names))
	}
}

// TestFairTurns: principals take turns, then the sessions of a principal, then
// the extensions of a session; within an extension, the oldest call is first.
func TestFairTurns(t *testing.T) {
	l, _ := Limits{Concurrent: 1, PerExtension: 1}.filled()
	g := newLimiter(l.Always, nil)
	if w, err := g.ask("x", whose{}); w != nil || err != nil {
		t.Fatal(w, err)
	}
	type waits struct {
		*waiter
		name, ext string
		who       whose
	}
	var all []*waits
	add := func(n int, principal, session, ext string) {
		for i := range n {
			who := whose{principal: principal, session: session}
			w, err := g.ask(ext, who)
			if err != nil {
				t.Fatal(err)
			}
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
	l, _ := Limits{Concurrent: 1, PerExtension: 1, Queue: 20, QueuePerExtension: 20}.filled()
	g := newLimiter(l.Always, nil)
	if w, err := g.ask("x", whose{}); w != nil || err != nil {
		t.Fatal(w, err)
	}
	for i := range 20 {
		if _, err := g.ask("x", whose{principal: "ann", caller: "agent", session: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.ask("x", whose{principal: "ann", caller: "agent", session: "one more"}); err == nil {
		t.Error("the agent's 21st call waits in a queue of 20")
	}
	w, err := g.ask("x", whose{principal: "ann", caller: "person", session: "s"})
	if err != nil {
		t.Fatalf("the person's call is rejected: %v", err)
	}
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
		l, _ := tt.limits.filled()
		g := newLimiter(l.Always, nil)
		if w, err := g.ask("x", whose{}); w != nil || err != nil {
			t.Fatal(w, err)
		}
		var flood, other []*waiter
		for range 4 {
			w, err := g.ask("x", whose{principal: "ann", session: "flood"})
			if err != nil {
				t.Fatal(err)
			}
			flood = append(flood, w)
		}
		refused := func(err error) bool {
			e, ok := errors.AsType[*capability.Error](err)
			return ok && e.Rule == tt.knob
		}
		if _, err := g.ask("x", whose{principal: "ann", session: "flood"}); !refused(err) {
			t.Errorf("%s: one more of the flood = %v, want a refusal", tt.knob, err)
		}
		for range 2 {
			w, err := g.ask("x", whose{principal: "ann", session: "other"})
			if err != nil || w == nil {
				t.Fatalf("%s: another session = %v, want to wait", tt.knob, err)
			}
			other = append(other, w)
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

// TestQuickBehindSlow: quick calls of one session do not wait for the 500 slow
// calls of another that came before, of the same extension.
func TestQuickBehindSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := tool{schema: `{"type":"object","additionalProperties":true}`, invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			if c.Session == "slow" {
				time.Sleep(250 * time.Millisecond) // the bubble's clock
			}
			return echo(ctx, c)
		}}
		r := newRig(t, x, nil)
		var wg sync.WaitGroup
		began := time.Now()
		start := func(session, principal string, n int, most time.Duration) {
			for i := range n {
				wg.Go(func() {
					call := callOf("look", fmt.Sprintf(`{"n":%d}`, i))
					call.Session, call.Principal.ID = session, principal
					if _, err := r.Invoke(t.Context(), call); err != nil {
						t.Errorf("Invoke(%s) = %v", session, err)
					}
					if took := time.Since(began); took > most {
						t.Errorf("a call of %s took %v, want at most %v", session, took, most)
					}
				})
			}
			synctest.Wait()
		}
		start("slow", "ann", 500, 8*time.Second)
		start("quick", "ann", 10, 500*time.Millisecond)
		start("quick", "bob", 10, 500*time.Millisecond)
		wg.Wait()
	})
}

// TestFiveHundred: 500 calls at once, of five extensions, one of which floods;
// bounded, fair and complete.
func TestFiveHundred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most, order := 0, 0, []string(nil)
		per := map[string]int{}
		x := tool{schema: `{"type":"object","additionalProperties":true}`, invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			mu.Lock()
			now++
			most = max(most, now)
			per[c.Session]++
			if per[c.Session] > 4 {
				t.Errorf("%d calls of %s at once, want at most 4", per[c.Session], c.Session)
			}
			order = append(order, c.Session)
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
		// The four small ones are through long before the flood is.
		small := 0
		for i, ext := range order {
			if ext != "flood" {
				small++
			}
			if small == 60 {
				if i > 120 {
					t.Errorf("the small extensions were served by call %d, want by 120", i)
				}
				break
			}
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

// TestQueueFull names the knob; so does a queue that takes too long.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		x := tool{invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) { <-hold; return echo(ctx, c) }}
		r := newRig(t, x, func(c *Config) {
			c.Limits = Limits{Concurrent: 1, Queue: 2, QueuePerExtension: 1, Wait: time.Minute}.Always
		})
		call := callOf("look", `{"text":"a"}`)
		errs := make(chan error, 2)
		go func() { _, err := r.Invoke(t.Context(), call); errs <- err }()
		synctest.Wait()
		go func() { _, err := r.Invoke(t.Context(), call); errs <- err }()
		synctest.Wait()
		_, err := r.Invoke(t.Context(), call)
		if e := wantKind(t, err, capability.Unavailable); e.Rule != "limits.queuePerExtension" || e.Fix == "" {
			t.Errorf("Invoke() error = %v, want the knob limits.queuePerExtension", e)
		}
		if e := wantKind(t, <-errs, capability.Unavailable); e.Rule != "limits.wait" {
			t.Errorf("Invoke() error = %v, want the knob limits.wait", e)
		}
		close(hold)
		if err := <-errs; err != nil {
			t.Errorf("the call that ran: %v", err)
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
