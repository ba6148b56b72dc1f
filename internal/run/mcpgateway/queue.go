package mcpgateway

import (
	"context"
	"slices"
	"sync"
)

// A queue lets so many calls onto a back end at one time. Those that wait are
// let on in turn: by whose they are, and of one principal by session. Neither
// many calls nor many sessions keep another waiting for all of them. Its methods
// may be called from any goroutine.
type queue struct {
	mu    sync.Mutex
	free  int               // 0 while anybody waits
	order []person          // who waits, the next first; each once
	line  map[person]*turns // of each what waits, never nothing
}

// whose says who has a turn.
type whose struct {
	person
	session string
}

type person struct{ tenant, principal string }

// turns are the calls of one person that wait, by session.
type turns struct {
	order []string                   // sessions, the next first; each once
	line  map[string][]chan struct{} // of each the calls, the first first
}

func newQueue(most int) *queue { return &queue{free: most, line: map[person]*turns{}} }

// enter waits for a place, which leave gives back. With an error there is none
// to give back.
func (q *queue) enter(ctx context.Context, who whose) error {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	t := q.line[who.person]
	if t == nil {
		t = &turns{line: map[string][]chan struct{}{}}
		q.line[who.person] = t
		q.order = append(q.order, who.person)
	}
	if len(t.line[who.session]) == 0 {
		t.order = append(t.order, who.session)
	}
	t.line[who.session] = append(t.line[who.session], turn)
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !q.giveUp(who, turn) { // the place came at the same moment
		q.leave()
	}
	return context.Cause(ctx)
}

// giveUp takes a call out of the line. It reports whether it was still there.
func (q *queue) giveUp(who whose, turn chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.line[who.person]
	if t == nil {
		return false
	}
	at := slices.Index(t.line[who.session], turn)
	if at < 0 {
		return false
	}
	t.line[who.session] = slices.Delete(t.line[who.session], at, at+1)
	if len(t.line[who.session]) == 0 {
		delete(t.line, who.session)
		t.order = slices.DeleteFunc(t.order, func(s string) bool { return s == who.session })
	}
	if len(t.order) == 0 {
		delete(q.line, who.person)
		q.order = slices.DeleteFunc(q.order, func(p person) bool { return p == who.person })
	}
	return true
}

// leave frees a place and passes it to the next in turn, if one waits.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		q.free++
		return
	}
	who := q.order[0]
	q.order = slices.Delete(q.order, 0, 1)
	t := q.line[who]
	t.next()
	if len(t.order) == 0 {
		delete(q.line, who)
		return
	}
	q.order = append(q.order, who) // behind all others
}

// next lets the first call on of the session whose turn it is.
func (t *turns) next() {
	session := t.order[0]
	t.order = slices.Delete(t.order, 0, 1)
	close(t.line[session][0])
	if t.line[session] = slices.Delete(t.line[session], 0, 1); len(t.line[session]) == 0 {
		delete(t.line, session)
		return
	}
	t.order = append(t.order, session)
}
