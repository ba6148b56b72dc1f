package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ken/capability"
)

// limiter limits how many calls run at once: in total, and those of one tenant, of
// one principal and of one extension. The others wait. Whenever a call ends, the
// waiting calls take turns: first by principal, then by the principal's sessions,
// then by the extensions that a session calls. Within one session and extension,
// the oldest call goes first. So a principal with many calls or sessions does not
// keep others waiting for all of them.
//
// With places, the limits but that in total are for all processes together, and
// places say how much of them this one may use.
type limiter struct {
	bounds func() Limits // as they are now
	places [kinds]Places // nil: the limits are for this process
	asking sync.Mutex    // held while bounds is asked; see renew

	mu      sync.Mutex
	limits  Limits
	running int
	loads   [kinds]map[string]*load
	line    line // all waiting calls
	pass    int  // counts how often places were looked for
	again   *time.Timer
}

// A kind is what calls are counted by. A call gets its places in this order, and
// needs a place of one kind only if it has one of those before. So two processes
// never each hold what the other waits for.
type kind int

const (
	byTenant kind = iota
	byPrincipal
	byExtension
	kinds
)

func (k kind) String() string { return [...]string{"tenant", "principal", "extension"}[k] }

// setting is the name of the limit.
func (k kind) setting() string {
	return [...]string{"limits.perTenant", "limits.perPrincipal", "limits.perExtension"}[k]
}

// most returns how many calls of one of a kind may run at once; zero: any number.
func (l Limits) most(k kind) int {
	return [...]int{l.PerTenant, l.PerPrincipal, l.PerExtension}[k]
}

// A load counts the calls of one tenant, principal or extension.
type load struct {
	kind             kind
	name             string
	running, waiting int
	may              int // how many may run here, when that was last asked
	full             int // the last pass in which it had no place
}

// whose identifies the owner of a call. The caller is the principal or one of the
// programs that work for it, which choose the names of their sessions freely.
type whose struct {
	principal, caller, session string
	tenant                     string
}

func whoseCall(call capability.Call) whose {
	p := call.Principal
	return whose{principal: p.Tenant + "\x00" + p.ID, caller: string(call.Origin) + "\x00" + p.Agent, session: call.Session, tenant: p.Tenant}
}

// A waiter is a waiting call. When ready is closed, with the limiter's lock held,
// it is admitted or rejected with err.
type waiter struct {
	ready    chan struct{}
	admitted bool
	err      error
	in       *line // a leaf
}

func newLimiter(bounds func() Limits, places func(kind string) Places) *limiter {
	g := &limiter{bounds: bounds}
	for k := range kinds {
		g.loads[k] = map[string]*load{}
		if places != nil {
			g.places[k] = places(k.String())
			g.places[k].OnChange(func(name string, err error) { g.placesChanged(k, name, err) })
		}
	}
	return g
}

// Places divide the calls that may run at once among all processes that have the same
// limit. The names are those of extensions, principals or tenants.
type Places interface {
	// Use says how many calls of a name run here, and how many would if none had
	// to wait. It returns how many may. It must not block, nor call what OnChange set.
	Use(name string, limit, running, wanted int) int
	// OnChange sets what is called when more may run, or with why none can.
	OnChange(func(name string, err error))
}

// loadsOf returns the loads that a call counts for, and keeps new ones.
func (g *limiter) loadsOf(extension string, who whose) (out [kinds]*load) {
	for k, name := range [kinds]string{who.tenant, who.principal, extension} {
		l := g.loads[k][name]
		if l == nil {
			l = &load{kind: kind(k), name: name}
			g.loads[k][name] = l
		}
		out[k] = l
	}
	return out
}

// room reports whether one more call of these loads may run, as far as their limits go.
func (g *limiter) room(loads *[kinds]*load) bool { return g.missing(loads) == nil }

// missing returns the first load that has no place for one more call, or nil. It asks for
// each load once in a pass, as long as there is none.
func (g *limiter) missing(loads *[kinds]*load) *load {
	for _, l := range loads {
		if g.limits.most(l.kind) == 0 {
			continue
		}
		if l.full == g.pass || l.running >= g.use(l, 1) {
			l.full = g.pass
			return l
		}
	}
	return nil
}

// use says how many calls of a load could begin now, which are at least so many. It
// returns how many may run.
func (g *limiter) use(l *load, least int) int {
	l.may = g.limits.most(l.kind)
	if p := g.places[l.kind]; p != nil {
		l.may = p.Use(l.name, l.may, l.running, l.running+min(max(g.ready(l), least), g.spare()))
	}
	return l.may
}

// tell says how many calls of a load run and wait.
func (g *limiter) tell(l *load) {
	if g.places[l.kind] != nil && g.limits.most(l.kind) > 0 {
		g.use(l, 0)
	}
}

// tellAll tells of all loads of a call, and drops those that neither run nor wait.
func (g *limiter) tellAll(loads *[kinds]*load) {
	for _, l := range loads {
		g.tell(l)
		if l.running == 0 && l.waiting == 0 && g.loads[l.kind][l.name] == l {
			delete(g.loads[l.kind], l.name)
		}
	}
}

// ready returns how many waiting calls of a load could begin if it had places: those
// that do not wait for a place of a kind before it. Of a tenant, they are those that the
// limit of their principal allows.
func (g *limiter) ready(l *load) int {
	if g.limits.PerTenant == 0 && g.limits.PerPrincipal == 0 || l.waiting == 0 {
		return l.waiting
	}
	switch l.kind {
	case byTenant:
		sum := 0
		for _, person := range g.line.order {
			if of := person.leaf().loads; of[byTenant] == l {
				sum += min(person.waiting, free(of[byPrincipal], g.limits.PerPrincipal))
			}
		}
		return sum
	case byPrincipal:
		if tenant := g.line.child(l.name).leaf().loads[byTenant]; g.limits.PerTenant > 0 {
			return min(l.waiting, max(0, tenant.may-tenant.running))
		}
		return l.waiting
	}
	byTenants := map[*load]int{}
	for _, person := range g.line.order {
		n, of := person.of(l.name), person.leaf().loads
		if g.limits.PerPrincipal > 0 {
			n = min(n, max(0, of[byPrincipal].may-of[byPrincipal].running))
		}
		byTenants[of[byTenant]] += n
	}
	sum := 0
	for tenant, n := range byTenants {
		if g.limits.PerTenant > 0 {
			n = min(n, max(0, tenant.may-tenant.running))
		}
		sum += n
	}
	return sum
}

// free returns how many more calls of a load a limit allows; zero is none.
func free(l *load, limit int) int {
	if limit == 0 {
		return l.waiting
	}
	return max(0, limit-l.running)
}

// spare returns how many more calls this process can run.
func (g *limiter) spare() int { return max(0, g.limits.Concurrent-g.running) }

// placesChanged admits calls that have a place now. With an error it rejects those that
// wait for one.
func (g *limiter) placesChanged(k kind, name string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.loads[k][name]
	if l == nil {
		return
	}
	if err == nil {
		g.fill()
		return
	}
	set := k.setting()
	err = &capability.Error{
		Kind: capability.Unavailable, Op: "queue", Rule: set,
		Err: fmt.Errorf("%s holds for all replicas together, and this one has no share of it, because the store does not answer: %w", set, err),
		Fix: "call again when PostgreSQL answers; ken doctor --cluster says what is wrong with it",
	}
	for _, w := range g.line.all(l) {
		w.err = err
		w.in.remove(w)
		g.tellAll(&w.in.loads)
		close(w.ready)
	}
}

// lookAgain says from time to time what the waiting calls need, while there are any. That
// changes also by what other processes do: they may take places that a waiting call needs
// as well.
func (g *limiter) lookAgain() {
	if g.again != nil || g.line.waiting == 0 || g.places[byTenant] == nil || g.limits.PerTenant == 0 && g.limits.PerPrincipal == 0 {
		return
	}
	g.again = time.AfterFunc(lookEvery, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.again = nil
		g.fill()
		for _, loads := range g.loads {
			for _, l := range loads {
				g.tell(l)
			}
		}
		g.lookAgain()
	})
}

const lookEvery = time.Second

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
	for k, loads := range g.loads {
		if was := g.limits.most(kind(k)); was > 0 && l.most(kind(k)) == 0 && g.places[k] != nil {
			for name := range loads {
				g.places[k].Use(name, was, 0, 0) // no limit any more
			}
		}
	}
	g.limits = l
	g.fill()
}

// enter waits for a place. The caller returns it with leave.
func (g *limiter) enter(ctx context.Context, name string, who whose) error {
	w, err := g.ask(name, who)
	if w == nil || err != nil {
		return err
	}
	return g.await(ctx, name, who, w)
}

// await waits for the turn of a call that is in line.
func (g *limiter) await(ctx context.Context, name string, who whose, w *waiter) error {
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	}
	why := context.Cause(ctx)
	if errors.Is(why, errQueueWait) {
		why = g.tooLong(w)
	}
	if !g.withdraw(w) && w.err == nil {
		g.leave(name, who) // it was admitted at the same moment
	}
	return why
}

var errQueueWait = errors.New("the call waited longer than limits.wait allows")

// tooLong says what a call waited for until limits.wait was over.
func (g *limiter) tooLong(w *waiter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass++
	what, most := "limits.concurrent", g.limits.Concurrent
	if g.running < most {
		if l := g.missing(&w.in.loads); l != nil {
			what, most = l.kind.setting(), g.limits.most(l.kind)
		}
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: "queue", Rule: "limits.wait",
		Err: fmt.Errorf("%w; %s is %d, and as many calls are running", errQueueWait, what, most),
		Fix: "call again later, or raise " + what + " or limits.wait",
	}
}

// ask takes a place, with a nil waiter, or gets in line.
func (g *limiter) ask(name string, who whose) (*waiter, error) {
	g.renew()
	g.mu.Lock()
	defer g.mu.Unlock()
	loads := g.loadsOf(name, who)
	if g.straight(&loads) {
		g.admit(&loads)
		return nil, nil
	}
	if err := g.makeRoom(loads[byExtension], who); err != nil {
		g.tellAll(&loads)
		return nil, err
	}
	loads = g.loadsOf(name, who) // crowdOut may have removed some with their last call
	w := &waiter{ready: make(chan struct{})}
	w.in = g.line.kid(who.principal).kid(who.caller).kid(who.session).kid(name)
	w.in.loads = loads
	w.in.add(w)
	g.tellAll(&loads)
	g.lookAgain()
	return w, nil
}

// straight reports whether a new call has a place without waiting. Calls that wait and
// have one now go first.
func (g *limiter) straight(loads *[kinds]*load) bool {
	for _, l := range loads {
		if l.waiting > 0 && g.limits.most(l.kind) > 0 {
			g.fill()
			break
		}
	}
	g.pass++
	return g.running < g.limits.Concurrent && g.room(loads)
}

// admit counts a call that begins.
func (g *limiter) admit(loads *[kinds]*load) {
	g.running++
	for _, l := range loads {
		l.running++
	}
	g.tellAll(loads)
}

// makeRoom returns why one more call of an extension cannot wait. If the queue
// is full and another session has more calls in it than this one, the newest
// call of that session is rejected instead.
func (g *limiter) makeRoom(l *load, who whose) error {
	// The extension is first: a call of it that goes makes room in the whole queue too.
	// The other way, another call could be rejected although this one is as well.
	if l.waiting >= g.limits.QueuePerExtension && g.limits.QueuePerExtension < g.limits.Queue {
		err := full("limits.queuePerExtension", g.limits.QueuePerExtension, "calls of this extension wait already")
		if !g.crowdOut(who, l.name, err) {
			return err
		}
	}
	if g.line.waiting >= g.limits.Queue {
		err := full("limits.queue", g.limits.Queue, "calls wait already")
		if !g.crowdOut(who, "", err) {
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
	for from.queue == nil { // down to the most crowded queue
		from = slices.MaxFunc(from.order, func(a, b *line) int { return cmp.Compare(a.of(extension), b.of(extension)) })
	}
	w := from.queue[len(from.queue)-1]
	w.err = err
	from.remove(w)
	g.tellAll(&from.loads)
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
	g.tellAll(&w.in.loads)
	return true
}

// anyWaits reports whether a call waits for a place.
func (g *limiter) anyWaits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.line.waiting > 0
}

// leave frees a place for the next in turn.
func (g *limiter) leave(name string, who whose) {
	if g.anyWaits() { // all others ask for the limits when they come
		g.renew()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	loads := g.loadsOf(name, who)
	g.running--
	for _, l := range loads {
		l.running--
	}
	g.fill()
	g.tellAll(&loads)
}

// leaveAfter frees a place once an executor has returned that its call was ended
// without, which closes abandoned; nil: it has returned. What did not stop still takes
// up its place.
func (g *limiter) leaveAfter(abandoned <-chan struct{}, name string, who whose) {
	if abandoned == nil {
		g.leave(name, who)
		return
	}
	go func() { <-abandoned; g.leave(name, who) }()
}

// fill admits as many calls as there is room for.
func (g *limiter) fill() {
	g.pass++
	for g.running < g.limits.Concurrent {
		w := g.line.next(g.room)
		if w == nil {
			return
		}
		g.admit(&w.in.loads)
		w.admitted = true
		close(w.ready)
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

// wait waits for the turn of a call.
func (r *Runner) wait(ctx context.Context, inv *invocation) error {
	name, who := inv.target.extension(), whoseCall(inv.call)
	w, err := r.limiter.ask(name, who)
	if w == nil || err != nil {
		return err
	}
	if most := inv.limits.Wait; most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, errQueueWait)
		defer cancel()
	}
	err = r.limiter.await(ctx, name, who, w)
	if err == nil || ctx.Err() == nil || errors.Is(err, errQueueWait) {
		return err
	}
	return gaveUp(ctx)
}
