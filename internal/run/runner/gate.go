package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ken/capability"
)

// gate lets calls through, so many at once, so many of each extension; the
// others wait. Whenever one ends, the extensions that wait take turns, and
// within one the call that came first goes first.
type gate struct {
	bounds func() Limits // as they are now
	asking sync.Mutex    // held while bounds is asked; see renew

	mu      sync.Mutex
	limits  Limits
	running int
	waiting int
	lanes   map[string]*lane
	turns   []*lane // those with somebody waiting, the next to be served first
}

type lane struct {
	name    string
	running int
	queue   []*waiter
}

// waiter is admitted when ready is closed, under the gate's lock.
type waiter struct {
	ready    chan struct{}
	admitted bool
}

func newGate(bounds func() Limits) *gate { return &gate{bounds: bounds, lanes: map[string]*lane{}} }

// renew takes the limits as they are now, wider or narrower. What runs already
// goes on. They are asked for beside the gate's lock, because that may look at
// files, and by one at a time, so that older ones never replace newer ones.
func (g *gate) renew() {
	g.asking.Lock()
	defer g.asking.Unlock()
	l := g.bounds()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limits == l {
		return
	}
	g.limits = l
	for g.running < g.limits.Concurrent && g.admit() {
	}
}

// enter waits for a place. Whoever got one gives it back with leave.
func (g *gate) enter(ctx context.Context, name string) error {
	w, err := g.ask(name)
	if w == nil || err != nil {
		return err
	}
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	if !g.withdraw(name, w) {
		g.leave(name) // it was admitted at the same moment
	}
	return context.Cause(ctx)
}

// ask takes a place, with a nil waiter, or gets in line.
func (g *gate) ask(name string) (*waiter, error) {
	g.renew()
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[name]
	if l == nil {
		l = &lane{name: name}
		g.lanes[name] = l
	}
	// While there is room for an extension, none of its calls waits.
	if g.running < g.limits.Concurrent && l.running < g.limits.PerExtension {
		g.running++
		l.running++
		return nil, nil
	}
	switch {
	case g.waiting >= g.limits.Queue:
		g.forget(l)
		return nil, full("limits.queue", g.limits.Queue, "calls wait already")
	case len(l.queue) >= g.limits.QueuePerExtension:
		return nil, full("limits.queuePerExtension", g.limits.QueuePerExtension, "calls of this extension wait already")
	}
	w := &waiter{ready: make(chan struct{})}
	if len(l.queue) == 0 {
		g.turns = append(g.turns, l)
	}
	l.queue = append(l.queue, w)
	g.waiting++
	return w, nil
}

func full(knob string, n int, what string) error {
	return &capability.Error{
		Kind: capability.Unavailable, Op: "queue", Rule: knob,
		Err: fmt.Errorf("%d %s, which is all that %s allows", n, what, knob),
		Fix: "call again later, or raise " + knob,
	}
}

// withdraw takes a waiter out of its line. It reports false when it was
// admitted before.
func (g *gate) withdraw(name string, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.admitted {
		return false
	}
	l := g.lanes[name]
	i := slices.Index(l.queue, w)
	l.queue = slices.Delete(l.queue, i, i+1)
	g.waiting--
	if len(l.queue) == 0 {
		g.turns = slices.DeleteFunc(g.turns, func(x *lane) bool { return x == l })
		g.forget(l)
	}
	return true
}

// leave gives a place back, to whoever's turn it is.
func (g *gate) leave(name string) {
	g.renew()
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lanes[name]
	g.running--
	l.running--
	for g.running < g.limits.Concurrent && g.admit() {
	}
	g.forget(l)
}

// admit lets one waiter in, of the first extension in turn that has room, which
// then goes to the end.
func (g *gate) admit() bool {
	for i, l := range g.turns {
		if l.running >= g.limits.PerExtension {
			continue
		}
		w := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		g.turns = slices.Delete(g.turns, i, i+1)
		if len(l.queue) > 0 {
			g.turns = append(g.turns, l)
		}
		g.waiting--
		g.running++
		l.running++
		w.admitted = true
		close(w.ready)
		return true
	}
	return false
}

// forget drops an extension that neither runs nor waits.
func (g *gate) forget(l *lane) {
	if l.running == 0 && len(l.queue) == 0 {
		delete(g.lanes, l.name)
	}
}

// Load is how full a Runner is.
type Load struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"`

	// Unsettled counts the effects since the start whose result could not be
	// kept: made again, their calls are unknown.
	Unsettled int64 `json:"unsettled,omitempty"`
}

// Load says how many calls run and how many wait for their turn.
func (r *Runner) Load() Load {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	return Load{r.gate.running, r.gate.waiting, r.unsettled.Load()}
}

var errQueueWait = errors.New("the call waited longer in the queue than limits.wait allows")

// limit waits for the call's turn. The record of what is about to happen is
// made before: see [Runner.begin].
func (r *Runner) limit(next step) step {
	return func(ctx context.Context, t *trip) (capability.Result, error) {
		earlier, err := r.begin(ctx, t)
		if err != nil || earlier != nil {
			return earlier.outcome(err)
		}
		name := t.extension()
		if err := r.wait(ctx, t, name); err != nil {
			r.release(ctx, t)
			return capability.Result{}, err
		}
		defer func() {
			if t.abandon == nil {
				r.gate.leave(name)
				return
			}
			// What did not stop still takes up its place.
			go func() { <-t.abandon; r.gate.leave(name) }()
		}()
		return next(ctx, t)
	}
}

func (r *Runner) wait(ctx context.Context, t *trip, name string) error {
	if t.limits.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.limits.Wait, errQueueWait)
		defer cancel()
	}
	err := r.gate.enter(ctx, name)
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(err, errQueueWait):
		return &capability.Error{
			Kind: capability.Unavailable, Op: "queue", Rule: "limits.wait", Err: errQueueWait,
			Fix: "call again later, or raise limits.wait",
		}
	}
	return gaveUp(ctx)
}
