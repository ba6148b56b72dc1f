package stream

import (
	"context"
	"iter"
	"time"

	"ken/capability"
	"ken/internal/serve/httpapi/wire"
)

// tell wakes those who wait for the next event.
func (l *log) tell() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// fit makes an event one that the ring can have beside others.
func (h *Hub) fit(name string, data []byte) []byte {
	if most := h.cfg.MostBytes / 4; len(data) > most {
		return shrink(name, data, most)
	}
	return data
}

// add takes an event that fits in and wakes all who wait for it. The lock is
// held.
func (h *Hub) add(l *log, name string, data []byte, part fragment) {
	h.addAs(l, h.id(l.ring.last+1), name, data, part)
	h.relay.changed(l)
}

// addAs is add for an event of another replica too: it has an id already.
func (h *Hub) addAs(l *log, id, name string, data []byte, part fragment) {
	l.ring.add(Frame{ID: id, Name: name, Data: data}, part)
	l.tell()
}

// atOnce is how many frames a follower takes under one lock.
const atOnce = 16

// Follow returns the events of a session that come after an id, now and later,
// until ctx ends, the loop over it ends, or the hub is drained. Where an id is
// not known, or what came after it is no longer kept, the first frame is
// "reset", and what follows begins with what happens from then on. The same
// happens in the middle to a follower that is too slow.
//
// Without an id it begins where the turn that runs began. When no turn runs, or
// ran when the stream had caught up for the first time, it gets "idle" once.
//
// When the hub is drained, the last frame is "leaving", without an id and data.
//
// A frame may hold several fragments of an answer that stand beside each other;
// its id is that of the last.
func (h *Hub) Follow(ctx context.Context, who capability.Principal, session, after string) iter.Seq[Frame] {
	return func(yield func(Frame) bool) {
		l := h.use(keyOf(who, session))
		defer h.leave(l)
		h.relay.attach(ctx, l, after)
		f := &follower{h: h, l: l, ctx: ctx, yield: yield}
		f.begin(after)
		f.run()
	}
}

// A follower reads the ring of a session by its own cursor. It belongs to one
// goroutine.
type follower struct {
	h      *Hub
	l      *log
	ctx    context.Context
	yield  func(Frame) bool
	cursor int64
	caught bool // up with what there was
	pieces [atOnce]piece
	beat   *time.Timer
}

// begin finds where to begin.
func (f *follower) begin(after string) {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if after != "" {
		n, ok := f.h.find(l, after)
		if !ok {
			n = -1 // which is lost
		}
		f.cursor = n
		return
	}
	f.cursor = l.ring.last
	if l.turn != nil {
		f.cursor = l.turn.from.n
	} else if m := &l.mirror; m.owner != "" {
		if at, ok := m.place(m.owner, m.turn.From); ok {
			f.cursor = at
		}
	}
}

func (f *follower) run() {
	f.beat = time.NewTimer(f.h.cfg.Beat)
	defer f.beat.Stop()
	for f.ctx.Err() == nil {
		n, own, wake, over := f.next()
		switch {
		case own.Name != "":
			if !f.yield(own) {
				return
			}
		case n > 0:
			if !f.give(n) {
				return
			}
		case over:
			f.yield(Frame{Name: wire.Leaving})
			return
		default:
			if !f.wait(wake) {
				return
			}
		}
	}
}

// next returns what there is: pieces, a frame of the follower's own, something to
// wait for, or the end.
func (f *follower) next() (n int, own Frame, wake <-chan struct{}, over bool) {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	n, lost := l.ring.read(f.cursor, f.pieces[:])
	switch {
	case lost:
		f.cursor = l.ring.last
		return 0, f.own("reset"), nil, false
	case n > 0:
		for i := range f.pieces[:n] {
			if p := &f.pieces[i]; p.kind != whole {
				p.frame.ID = f.h.idAt(l, p.last)
			}
		}
		return n, own, nil, false
	case !f.caught:
		f.caught = true
		if !l.running() {
			return 0, f.own("idle"), nil, false
		}
	}
	if l.closing && l.turn == nil && !l.held {
		return 0, own, nil, true
	}
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	return 0, own, l.wake, false
}

// own is a frame that only this follower gets. The lock is held.
func (f *follower) own(name string) Frame {
	return Frame{ID: f.h.idAt(f.l, f.cursor), Name: name, Data: []byte(`{"type":"` + name + `"}`)}
}

// give hands pieces on.
func (f *follower) give(n int) bool {
	for i := range f.pieces[:n] {
		p := &f.pieces[i]
		frame := p.frame
		if p.kind != whole {
			frame = Frame{ID: frame.ID, Name: "delta", Data: encodeFragment(p.kind, string(p.text))}
		}
		f.cursor = p.last
		*p = piece{} // it must not keep what the ring lets go of
		if f.ctx.Err() != nil || !f.yield(frame) {
			return false
		}
	}
	return true
}

// wait waits for the next event.
func (f *follower) wait(wake <-chan struct{}) bool {
	f.beat.Reset(f.h.cfg.Beat)
	select {
	case <-wake:
		return true
	case <-f.ctx.Done():
		return false
	case <-f.beat.C:
		return f.yield(Frame{})
	}
}
