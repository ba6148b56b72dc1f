package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"ken/capability"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/problem"
	"ken/internal/talk/event"
	"ken/internal/untrusted"
)

// A Hold keeps a session from turns of this hub, for a caller that is about to begin
// one or to change the session otherwise. It ends with one of its methods.
type Hold struct {
	h       *Hub
	l       *log
	who     capability.Principal
	counted bool // among the turns
}

// Hold takes a session. While a turn of it runs here, or another caller holds it,
// that is a Conflict; a hub that is drained has the code "stopping". It counts as
// a turn: a principal who has too many gets the code "too-many-turns".
func (h *Hub) Hold(who capability.Principal, session string) (*Hold, error) {
	return h.hold(who, session, true)
}

// Seize is Hold for what takes no time and is no turn: it does not count towards
// their limit. The Hold it returns must not be started.
func (h *Hub) Seize(who capability.Principal, session string) (*Hold, error) {
	return h.hold(who, session, false)
}

func (h *Hub) hold(who capability.Principal, session string, counted bool) (*Hold, error) {
	h.mu.Lock()
	if err := h.roomLocked(who, session, counted); err != nil {
		h.mu.Unlock()
		return nil, err
	}
	if counted {
		h.busy++
		h.own[owner{who.Tenant, who.ID}]++
	}
	h.turns.Add(1)
	l := h.useLocked(keyOf(who, session))
	h.mu.Unlock()
	l.mu.Lock()
	taken := l.turn != nil || l.held
	if !taken {
		l.held, l.gen = true, h.gens.Add(1)
	}
	l.mu.Unlock()
	hold := &Hold{h: h, l: l, who: who, counted: counted}
	if taken {
		hold.leave()
		return nil, &capability.Error{Kind: capability.Conflict, Op: "begin a turn of", Target: session, Err: errors.New("another turn of this session runs"), Fix: "wait until it ends, or abort it"}
	}
	return hold, nil
}

// roomLocked says why a session cannot be held now, whatever happens in it.
func (h *Hub) roomLocked(who capability.Principal, session string, counted bool) error {
	switch {
	case h.draining:
		return stopping()
	case !counted:
	case h.own[owner{who.Tenant, who.ID}] >= h.cfg.MostOwn:
		return &wire.Problem{
			Status: http.StatusTooManyRequests, Code: "too-many-turns", More: map[string]any{"limit": h.cfg.MostOwn},
			Detail: fmt.Sprintf("%d turns of %s run here, which is the most that one may have at once; wait until one has ended, or abort one", h.cfg.MostOwn, untrusted.Line(who.ID, 100)),
		}
	case h.busy >= h.cfg.MostSessions:
		return &capability.Error{Kind: capability.Unavailable, Op: "begin a turn of", Target: session, Err: fmt.Errorf("%d turns run here, which is the most", h.cfg.MostSessions), Fix: "wait until one has ended"}
	}
	return nil
}

func (hold *Hold) leave() {
	h := hold.h
	if hold.counted {
		o := owner{hold.who.Tenant, hold.who.ID}
		h.mu.Lock()
		h.busy--
		if h.own[o]--; h.own[o] == 0 {
			delete(h.own, o)
		}
		h.mu.Unlock()
	}
	h.leave(hold.l)
	h.turns.Done()
}

// Release ends the hold on the session. changed means that the session was
// changed meanwhile, so its followers must read it again.
func (hold *Hold) Release(changed bool) {
	l := hold.l
	l.mu.Lock()
	l.held, l.gen = false, hold.h.gens.Add(1)
	if changed {
		l.asked, l.last, l.known = questions{}, nil, 0
		hold.h.add(l, "reset", []byte(`{"type":"reset"}`), fragment{})
	}
	l.tell()
	l.mu.Unlock()
	hold.leave()
}

// Begin is what a turn begins with.
type Begin struct {
	Input event.Input
	Said  string // as people see it: what was typed
	Turn  int    // the number that the turn will have
	Base  int    // the newest entry of the session before it

	// Changed means that the session was changed while it was held.
	Changed bool
}

// A Turn is one that was begun.
type Turn struct {
	After string // the id of the event before its first

	in     event.Input
	number int
	cancel context.CancelFunc
	record record                               // under the log's lock
	left   func(context.Context, []event.Asked) // likewise: see [Hub.Abort]

	// Where those who come late can begin: before the turn, or after a step.
	from, step point
	weight     int // bytes of its events so far

	over  chan struct{}
	done  event.Done
	asked []event.Asked
	err   error
}

// A point is an event, and the newest entry of the session then.
type point struct {
	n   int64
	seq int
}

// Start begins a turn, which runs until it is over, with or without listeners.
func (hold *Hold) Start(b Begin) *Turn {
	h, l := hold.h, hold.l
	b.Input.Principal, b.Input.Session, b.Input.Leave = hold.who, l.key.session, h.leaving
	ctx, cancel := context.WithCancel(context.Background())
	first := h.fit("said", encodeSaid(b))
	t := &Turn{in: b.Input, number: b.Turn, cancel: cancel, over: make(chan struct{})}
	l.mu.Lock()
	if b.Changed {
		l.last, l.known = nil, 0
		h.add(l, "reset", []byte(`{"type":"reset"}`), fragment{})
	}
	if b.Input.Continue {
		h.saw(l, b.Turn)
	} else {
		h.saw(l, b.Turn-1)
	}
	t.After, t.from = h.id(l.ring.last), point{l.ring.last, b.Base}
	l.held, l.turn, l.gen = false, t, h.gens.Add(1)
	l.asked = questions{}
	h.add(l, "said", first, fragment{})
	l.mu.Unlock()
	go h.run(ctx, hold, t)
	return t
}

// Wait waits for the end of a turn. The error is why there was none, or that of
// ctx. Asked are the questions that are left where it waits for a person.
func (t *Turn) Wait(ctx context.Context) (event.Done, []event.Asked, error) {
	select {
	case <-t.over:
		return t.done, t.asked, t.err
	case <-ctx.Done():
		return event.Done{}, nil, ctx.Err()
	}
}

// keeping is how long a record may take to be kept.
const keeping = 30 * time.Second

// run is a turn, from its first event to its record.
func (h *Hub) run(ctx context.Context, hold *Hold, t *Turn) {
	defer hold.leave()
	defer t.cancel()
	h.play(ctx, hold.l, t)
	h.settle(ctx, hold.l, t)
	h.end(hold.l, t)
	if t.err != nil || h.cfg.Keep == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keeping)
	defer cancel()
	if err := h.cfg.Keep(ctx, t.in.Principal, t.in.Session, t.done.Turn, t.record.bytes()); err != nil {
		h.cfg.Log.Warn("the record of a turn was not kept", "session", t.in.Session, "turn", t.done.Turn, "err", err)
	}
}

// settling is how long the caller that aborted a turn may take to settle what it asked.
const settling = 5 * time.Second

// settle passes what an aborted turn still asked to the caller that aborted it.
func (h *Hub) settle(ctx context.Context, l *log, t *Turn) {
	l.mu.Lock()
	left, asked := t.left, l.asked.pending()
	l.mu.Unlock()
	if left == nil || len(asked) == 0 || t.err != nil || t.done.Reason != event.EndAborted {
		return
	}
	defer func() {
		if broke := recover(); broke != nil { // the turn has ended all the same
			h.cfg.Log.Error("what a turn asked was not settled", "session", t.in.Session, "cause", broke)
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()
	left(ctx, asked)
}

// play passes on what happens. The last event is held back until the session is
// free again: who sees it may begin the next turn.
func (h *Hub) play(ctx context.Context, l *log, t *Turn) {
	ended := false
	defer func() {
		if broke := recover(); broke != nil {
			h.cfg.Log.Error("a turn broke", "session", t.in.Session, "cause", broke, "stack", string(debug.Stack()))
			t.err = errors.New("the turn broke")
		} else if !ended && t.err == nil {
			t.err = errors.New("the turn ended without a last event")
		}
	}()
	for ev, err := range h.cfg.Turn(ctx, t.in) {
		switch done, ok := ev.(event.Done); {
		case err != nil:
			t.err = err
		case ok:
			t.done, ended = done, true
		default:
			h.tell(ctx, l, t, ev)
		}
	}
}

// tell passes an event on.
func (h *Hub) tell(ctx context.Context, l *log, t *Turn, ev event.Event) {
	name, data, part, err := encode(ev)
	if err != nil {
		h.cfg.Log.Error("an event cannot be written", "session", t.in.Session, "event", name, "err", err)
		return
	}
	seq := 0
	if _, ok := ev.(event.Step); ok && h.cfg.Last != nil && t.weight > h.cfg.MostBytes/4 {
		// The turn waits meanwhile, and all that it told is written.
		if seq, err = h.cfg.Last(ctx, t.in.Principal, t.in.Session); err != nil {
			seq = 0 // those who come late miss something, and the turn goes on
		}
	}
	// What takes time is done before the lock: followers wait for that.
	remembered, data := memorable(ev, name, data), h.fit(name, data)
	l.mu.Lock()
	defer l.mu.Unlock()
	t.weight += len(data)
	l.asked.note(ev)
	t.record.add(name, remembered)
	h.add(l, name, data, part)
	if seq > 0 {
		t.step = point{l.ring.last, seq}
	}
}

// end tells the last of a turn.
func (h *Hub) end(l *log, t *Turn) {
	_, data, _, err := encode(t.done)
	if err != nil {
		data = shrink("done", nil, 0)
	}
	remembered, data := memorable(t.done, "done", data), h.fit("done", data)
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.err != nil {
		p, internal := problem.Of(t.err)
		if internal {
			h.cfg.Log.Error("a turn failed", "session", t.in.Session, "err", t.err)
		}
		l.asked = questions{}
		h.add(l, "failed", encodeFailed(p), fragment{})
	} else {
		if t.done.Reason != event.EndWaiting {
			l.asked.over()
		}
		t.asked = l.asked.pending()
		t.record.add("done", remembered)
		h.add(l, "done", data, fragment{})
		if l.known = t.done.Turn; t.done.Turn != t.number {
			// Another process was here in between.
			h.add(l, "reset", []byte(`{"type":"reset"}`), fragment{})
		}
		l.last = t
	}
	t.in = event.Input{Principal: t.in.Principal, Session: t.in.Session} // its pictures have been said
	l.turn, l.gen = nil, h.gens.Add(1)
	close(t.over)
}
