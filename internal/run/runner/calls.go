package runner

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
)

// A Running is a call that has not ended.
type Running struct {
	Call    uint64        `json:"call"`
	Target  capability.ID `json:"target"`
	Session string        `json:"session,omitempty"`

	Principal capability.Principal `json:"principal"`
	Mode      string               `json:"mode,omitempty"`
	Origin    capability.Caller    `json:"origin,omitempty"`
	Surface   string               `json:"surface,omitempty"`

	State State     `json:"state"`
	Began time.Time `json:"began"`
}

// Running lists the calls that have not ended, oldest first.
func (r *Runner) Running() []Running { return r.calls.running() }

// Stop ends the calls that choose picks, as if their callers had given up, and
// says how many. The reason goes into their results and records. A person who
// revokes a tool stops what runs of it with this.
func (r *Runner) Stop(reason error, choose func(Running) bool) int {
	return r.calls.stop(reason, choose)
}

// A liveCall is what others may see of a call and do to it while it runs.
type liveCall struct {
	asked Running // as it came in
	state atomic.Uint32
	stop  context.CancelCauseFunc
}

func (l *liveCall) at() State { return State(l.state.Load()) }

func (l *liveCall) seen() Running {
	out := l.asked
	out.State = l.at()
	return out
}

// calls are those of a Runner that have not ended. A closed one takes no more.
type calls struct {
	number atomic.Uint64 // of the last one

	mu     sync.Mutex
	live   map[uint64]*liveCall
	left   map[uint64]Running // calls that ended although their executor did not return
	closed bool
	idle   chan struct{} // closed when closed and nothing is live
}

func newCalls() *calls {
	return &calls{live: map[uint64]*liveCall{}, left: map[uint64]Running{}, idle: make(chan struct{})}
}

func (c *calls) enter(l *liveCall) *capability.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &capability.Error{
			Kind: capability.Unavailable, Op: "call", Target: string(l.asked.Target),
			Err: errors.New("the runner is closed"), Fix: "call again when it runs",
		}
	}
	c.live[l.asked.Call] = l
	return nil
}

// leave ends a call. One whose executor did not return is listed as left behind
// until it does, when abandoned is closed; nil: it returned.
func (c *calls) leave(l *liveCall, abandoned <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, l.asked.Call)
	if abandoned != nil {
		c.left[l.asked.Call] = l.seen()
		go c.forget(l.asked.Call, abandoned)
	}
	if c.closed && len(c.live) == 0 {
		close(c.idle)
	}
}

// forget waits for an executor that a call was ended without.
func (c *calls) forget(call uint64, gone <-chan struct{}) {
	<-gone
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.left, call)
}

// close takes no more calls. What it returns is closed when all have ended.
func (c *calls) close() (idle <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		if len(c.live) == 0 {
			close(c.idle)
		}
	}
	return c.idle
}

func (c *calls) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *calls) stop(reason error, choose func(Running) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, l := range c.live {
		if choose(l.seen()) {
			l.stop(reason)
			n++
		}
	}
	return n
}

func (c *calls) running() []Running {
	c.mu.Lock()
	out := c.runningLocked()
	c.mu.Unlock()
	coldsort.By(out, older)
	return out
}

func (c *calls) runningLocked() []Running {
	out := make([]Running, 0, len(c.live))
	for _, l := range c.live {
		out = append(out, l.seen())
	}
	return out
}

// unended returns what runs, with the executors that were left behind, each once.
func (c *calls) unended() []Running {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.AppendSeq(c.runningLocked(), maps.Values(c.left))
	coldsort.By(out, older)
	return out
}

func older(a, b Running) int { return cmp.Compare(a.Call, b.Call) }
