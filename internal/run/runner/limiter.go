package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ken/capability"
)

// limiter limits how many calls run at once, in total and per extension; the
// others wait. Whenever a call ends, the waiting calls take turns: first by
// principal, then by the principal's sessions, then by the extensions that a
// session calls. Within one session and extension, the oldest call goes first.
// So a principal with many calls or sessions does not keep others waiting for
// all of them.
//
// With places, the limit per extension is for all processes together, and places
// says how much of it this one may use.
type limiter struct {
	bounds func() Limits // as they are now
	places Places        // nil: the limit is for this process
	asking sync.Mutex    // held while bounds is asked; see renew

	mu      sync.Mutex
	limits  Limits
	running int
	loads   map[string]*extensionLoad
	line    line // all waiting calls
}

// An extensionLoad counts the calls of one extension.
type extensionLoad struct {
	name             string
	running, waiting int
}

// whose identifies the owner of a call. The caller is the principal or one of the
// programs that work for it, which choose the names of their sessions freely.
type whose struct {
	principal, caller, session string
}

func whoseCall(call capability.Call) whose {
	p := call.Principal
	return whose{principal: p.Tenant + "\x00" + p.ID, caller: string(call.Origin) + "\x00" + p.Agent, session: call.Session}
}

// A waiter is a waiting call. When ready is closed, with the limiter's lock held,
// it is admitted or rejected with err.
type waiter struct {
	ready    chan struct{}
	admitted bool
	err      error
	in       *line // a leaf
}

func newLimiter(bounds func() Limits, places Places) *limiter {
	g := &limiter{bounds: bounds, places: places, loads: map[string]*extensionLoad{}}
	if places != nil {
		places.OnChange(g.placesChanged)
	}
	return g
}

// Places divide the calls of an extension that may run at once among all processes
// that have the same limit.
type Places interface {
	// Use says how many calls of an extension run here, and how many would if none had
	// to wait. It returns how many may. It must not block, nor call what OnChange set.
	Use(extension string, limit, running, wanted int) int
	// OnChange sets what is called when more may run, or with why none can.
	OnChange(func(extension string, err error))
}

// room reports whether one more call of an extension may run, as far as that limit goes.
func (g *limiter) room(l *extensionLoad) bool {
	most := g.limits.PerExtension
	if g.places != nil {
		most = g.places.Use(l.name, most, l.running, l.running+min(max(l.waiting, 1), g.spare()))
	}
	return l.running < most
}

// tell says how many calls of an extension run and wait.
func (g *limiter) tell(l *extensionLoad) {
	if g.places != nil {
		g.places.Use(l.name, g.limits.PerExtension, l.running, l.running+min(l.waiting, g.spare()))
	}
}

// spare returns how many more calls this process can run.
func (g *limiter) spare() int { return max(0, g.limits.Concurrent-g.running) }

// placesChanged admits calls of an extension that have a place now. With an error it
// rejects them.
func (g *limiter) placesChanged(name string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.loads[name]
	if l == nil {
		return
	}
	if err == nil {
		g.fill()
		return
	}
	err = &capability.Error{
		Kind: capability.Unavailable, Op: "queue", Rule: "limits.perExtension",
		Err: fmt.Errorf("limits.perExtension holds for all replicas together, and this one has no share of it, because the store does not answer: %w", err),
		Fix: "call again when PostgreSQL answers; ken doctor --cluster says what is wrong with it",
	}
	for _, w := range g.line.all(l) {
		w.err = err
		w.in.remove(w)
		close(w.ready)
	}
	g.tell(l)
	g.forget(l)
}

// renew takes the limits as they are now, wider or narrower. What runs already
// goes on. They are asked for beside the limiter's lock, because that may look at
// files, and by one at a time, so that older ones never replace newer ones.
func (g *limiter) renew() {
	g.asking.Lock()
	defer g.asking.Unlock()
	l := g.bounds()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limits == l {
		return
	}
	g.limits = l
	g.fill()
}

// enter waits for a place. The caller gives it back with leave.
func (g *limiter) enter(ctx context.Context, name string, who whose) error {
	w, err := g.ask(name, who)
	if w == nil || err != nil {
		return err
	}
	return g.await(ctx, name, w)
}

// await waits for the turn of a call that is in line.
func (g *limiter) await(ctx context.Context, name string, w *waiter) error {
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	}
	if !g.withdraw(w) && w.err == nil {
		g.leave(name) // it was admitted at the same moment
	}
	return context.Cause(ctx)
}

// ask takes a place, with a nil waiter, or gets in line.
func (g *limiter) ask(name string, who whose) (*waiter, error) {
	g.renew()
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.loads[name]
	if l == nil {
		l = &extensionLoad{name: name}
		g.loads[name] = l
	}
	// While there is room for an extension, none of its calls waits.
	if g.running < g.limits.Concurrent && l.waiting == 0 && g.room(l) {
		g.running++
		l.running++
		g.tell(l)
		return nil, nil
	}
	if err := g.makeRoom(l, who); err != nil {
		g.tell(l)
		g.forget(l)
		return nil, err
	}
	g.loads[name] = l // crowdOut may have removed the extension with its last call
	w := &waiter{ready: make(chan struct{})}
	w.in = g.line.kid(who.principal).kid(who.caller).kid(who.session).kid(name)
	w.in.load = l
	w.in.add(w)
	g.tell(l)
	return w, nil
}

// makeRoom returns why one more call of an extension cannot wait. If the queue
// is full and another session has more calls in it than this one, the newest
// call of that session is rejected instead.
func (g *limiter) makeRoom(l *extensionLoad, who whose) error {
	if g.line.waiting >= g.limits.Queue {
		err := full("limits.queue", g.limits.Queue, "calls wait already")
		if !g.crowdOut(who, "", err) {
			return err
		}
	}
	if l.waiting >= g.limits.QueuePerExtension {
		err := full("limits.queuePerExtension", g.limits.QueuePerExtension, "calls of this extension wait already")
		if !g.crowdOut(who, l.name, err) {
			return err
		}
	}
	return nil
}

// crowdOut rejects a waiting call to make room for a new one: the newest of the
// caller with the most waiting calls, in total or of one extension, if that caller
// has at least two more than the new call's. Between sessions of one caller the
// same holds. So neither a flood in one session nor one spread over many sessions
// keeps others out.
func (g *limiter) crowdOut(who whose, extension string, err error) bool {
	var callers []*line
	for _, person := range g.line.order {
		callers = append(callers, person.order...)
	}
	own := g.line.child(who.principal).child(who.caller)
	from := crowd(callers, own, extension)
	if from == nil && own != nil {
		from = crowd(own.order, own.child(who.session), extension)
	}
	if from == nil {
		return false
	}
	for from.load == nil { // down to the most crowded queue
		from = slices.MaxFunc(from.order, func(a, b *line) int { return cmp.Compare(a.of(extension), b.of(extension)) })
	}
	w := from.queue[len(from.queue)-1]
	w.err = err
	from.remove(w)
	g.tell(from.load)
	g.forget(from.load)
	close(w.ready)
	return true
}

// crowd returns the line with the most waiting calls, if it has at least two more
// than own, which may be nil.
func crowd(lines []*line, own *line, extension string) *line {
	if len(lines) == 0 {
		return nil
	}
	most := slices.MaxFunc(lines, func(a, b *line) int { return cmp.Compare(a.of(extension), b.of(extension)) })
	if most.of(extension) < own.of(extension)+2 {
		return nil
	}
	return most
}

func full(knob string, n int, what string) error {
	return &capability.Error{
		Kind: capability.Unavailable, Op: "queue", Rule: knob,
		Err: fmt.Errorf("limit reached: %d %s (%s)", n, what, knob),
		Fix: "call again later, or raise " + knob,
	}
}

// withdraw takes a waiter out of its line. It reports false when it was
// admitted or rejected before.
func (g *limiter) withdraw(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.admitted || w.err != nil {
		return false
	}
	w.in.remove(w)
	g.tell(w.in.load)
	g.forget(w.in.load)
	return true
}

// anyWaits reports whether a call waits for a place.
func (g *limiter) anyWaits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.waiting > 0
}

// leave frees a place for the next in turn.
func (g *limiter) leave(name string) {
	if g.anyWaits() { // all others ask for the limits when they come
		g.renew()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.loads[name]
	g.running--
	l.running--
	g.fill()
	g.tell(l)
	g.forget(l)
}

// leaveAfter frees a place once an executor has returned that its call was ended
// without, which closes abandoned; nil: it has returned. What did not stop still takes
// up its place.
func (g *limiter) leaveAfter(abandoned <-chan struct{}, name string) {
	if abandoned == nil {
		g.leave(name)
		return
	}
	go func() { <-abandoned; g.leave(name) }()
}

// fill admits as many calls as there is room for.
func (g *limiter) fill() {
	for g.running < g.limits.Concurrent {
		w := g.line.next(g.room)
		if w == nil {
			return
		}
		g.running++
		w.in.load.running++
		g.tell(w.in.load)
		w.admitted = true
		close(w.ready)
	}
}

// forget drops an extension that neither runs nor waits.
func (g *limiter) forget(l *extensionLoad) {
	if l.running == 0 && l.waiting == 0 {
		delete(g.loads, l.name)
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
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	return Load{r.limiter.running, r.limiter.line.waiting, r.effects.unsettled.Load()}
}

var errQueueWait = errors.New("the call waited longer in the queue than limits.wait allows")

// wait waits for the turn of a call.
func (r *Runner) wait(ctx context.Context, inv *invocation) error {
	w, err := r.limiter.ask(inv.target.extension(), whoseCall(inv.call))
	if w == nil || err != nil {
		return err
	}
	if most := inv.limits.Wait; most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errQueueWait)
		defer cancel()
	}
	err = r.limiter.await(ctx, inv.target.extension(), w)
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
