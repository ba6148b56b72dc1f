package mcpgateway

import (
	"context"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
)

const (
	firstPause = 250 * time.Millisecond // after the first failure
	mostPause  = 30 * time.Second

	// steady is how long a back end must have run for its end to count as the
	// first misfortune.
	steady = 30 * time.Second

	// quiet is how long a server must not have said that its lists changed
	// before they are read, and calm the least time between two readings.
	quiet = 100 * time.Millisecond
	calm  = time.Second

	// parkTime is how long a call waits for its answers.
	parkTime = 5 * time.Minute

	// doubtTime is how long a server that let a call run out of time may take to
	// answer a ping.
	doubtTime = 5 * time.Second

	// listIdle is how long a back end that was started for its lists waits for
	// its first caller.
	listIdle = time.Minute
)

// A key says whose a back end is.
type key struct {
	tenant, principal, session string
	listing                    bool // not used by a caller yet
}

// keyOf returns the key for a call.
func (s *Server) keyOf(p capability.Principal, session string) key {
	switch s.Scope {
	case ScopeShared:
		return key{}
	case ScopeSession:
		return key{tenant: p.Tenant, principal: p.ID, session: session}
	}
	return key{tenant: p.Tenant, principal: p.ID}
}

// A backend is one back end: the place of a link, which comes and goes. Its fields
// are guarded by the server's mu.
type backend struct {
	s     *server
	key   key
	calls *queue // those on their way

	login    bool       // it is logged in
	link     *link.Link // nil: none
	proc     *process   // of link, where it is a process
	began    time.Time
	starting chan struct{} // closed when a start is over; nil: none is on
	stopped  bool

	failures int
	until    time.Time // before which it is left alone
	err      error     // of the last start or end, until one works

	busy  int // callers
	used  time.Time
	keep  time.Time // before which it is not stopped for being idle
	idle  *time.Timer
	stale *time.Timer // lists are to be read; nil: they are not
	again bool        // they changed while they were read

	subs map[string]*topic
}

func newBack(s *server, k key) *backend {
	return &backend{s: s, key: k, calls: newQueue(s.def.Concurrent), used: now(), subs: map[string]*topic{}}
}

func now() time.Time { return time.Now() }

func over(l *link.Link) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// wait waits and reports whether neither context ended before.
func wait(ctx, other context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-other.Done():
	}
	return false
}

// live returns the link if there is one.
func (b *backend) live() *link.Link {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.link != nil && over(b.link) {
		return nil
	}
	return b.link
}

// release is the end of one use.
func (b *backend) release() {
	s := b.s
	s.mu.Lock()
	b.busy--
	b.used = now()
	var dead *link.Link
	if b.busy == 0 {
		switch {
		case s.retired:
			delete(s.backs, b.key)
			dead = b.stopLocked()
		case !b.stopped:
			b.armLocked(b.patience())
		}
	}
	s.mu.Unlock()
	if dead != nil {
		s.shut(dead)
	}
	if s.isRetired() {
		s.forget()
	}
}

func (s *server) isRetired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retired
}

// patience is how long the back end waits for its next use.
func (b *backend) patience() time.Duration {
	if b.key.listing {
		return min(listIdle, b.s.g.cfg.Idle)
	}
	return b.s.g.cfg.Idle
}

func (b *backend) armLocked(d time.Duration) {
	if b.idle == nil {
		b.idle = time.AfterFunc(d, func() { b.s.g.spawn(b.rest) })
		return
	}
	b.idle.Reset(d)
}

// rest stops the back end if it is not needed any more.
func (b *backend) rest() {
	s := b.s
	s.mu.Lock()
	left := max(b.used.Add(b.patience()).Sub(now()), b.keep.Sub(now()), b.until.Sub(now()))
	switch {
	case b.stopped || b.busy > 0:
		s.mu.Unlock()
		return
	case len(b.subs) > 0 || b.starting != nil:
		left = max(left, b.patience())
		fallthrough
	case left > 0:
		b.armLocked(left)
		s.mu.Unlock()
		return
	}
	if s.backs[b.key] == b {
		delete(s.backs, b.key)
	}
	l := b.stopLocked()
	s.mu.Unlock()
	if l != nil {
		s.shut(l)
	}
}

// stopLocked makes the back end one that is never used again. The caller closes
// the link it returns.
func (b *backend) stopLocked() *link.Link {
	b.stopped = true
	for _, t := range []*time.Timer{b.idle, b.stale} {
		if t != nil {
			t.Stop()
		}
	}
	l := b.link
	b.link = nil
	return l
}
