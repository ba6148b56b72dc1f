package stream

import (
	"errors"
	"slices"

	"ken/capability"
	"ken/internal/talk/event"
)

// questions are what a turn asks, in order. The zero value has none.
type questions struct {
	list []question
}

type question struct {
	id    string
	asked event.Asked // while it is open
	state answerState
	claim uint64 // whose answer is on its way
}

type answerState byte

const (
	open answerState = iota
	claimed
	closed
)

// mostAsked is how many questions of a turn are remembered once they are closed.
const mostAsked = 256

func (q *questions) find(id string) *question {
	i := slices.IndexFunc(q.list, func(x question) bool { return x.id == id })
	if i < 0 {
		return nil
	}
	return &q.list[i]
}

// note takes from an event what is asked and what has its answer.
func (q *questions) note(ev event.Event) {
	switch ev := ev.(type) {
	case event.Asked:
		if was := q.find(ev.ID); was != nil { // asked again: a turn goes on
			*was = question{id: ev.ID, asked: ev}
			return
		}
		if len(q.list) >= mostAsked {
			if i := slices.IndexFunc(q.list, func(x question) bool { return x.state == closed }); i >= 0 {
				q.list = slices.Delete(q.list, i, i+1)
			}
		}
		q.list = append(q.list, question{id: ev.ID, asked: ev})
	case event.Answered:
		if was := q.find(ev.ID); was != nil {
			*was = question{id: ev.ID, state: closed}
		}
	}
}

// over closes what is still open.
func (q *questions) over() {
	for i := range q.list {
		q.list[i] = question{id: q.list[i].id, state: closed}
	}
}

func (q *questions) pending() []event.Asked {
	var out []event.Asked
	for i := range q.list {
		if q.list[i].state != closed {
			out = append(out, q.list[i].asked)
		}
	}
	return out
}

// Claim returns what a session asks under an id, for the one who will answer it. It
// must be settled: with whether the answer was taken. What is not asked is
// NotFound, what has an answer, or gets one, a Conflict.
func (h *Hub) Claim(who capability.Principal, session, id string) (asked event.Asked, settle func(taken bool), err error) {
	refuse := func(kind capability.ErrorKind, text, fix string) (event.Asked, func(bool), error) {
		return event.Asked{}, nil, &capability.Error{Kind: kind, Op: "answer", Target: id, Err: errors.New(text), Fix: fix}
	}
	const look = "read the session for what it asks now"
	l, _ := h.look(who, session)
	if l == nil {
		return refuse(capability.NotFound, "nothing is asked under this id", look)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.asked.find(id)
	switch {
	case q == nil:
		return refuse(capability.NotFound, "nothing is asked under this id", look)
	case q.state == claimed:
		return refuse(capability.Conflict, "it is being answered", look)
	case q.state == closed:
		return refuse(capability.Conflict, "it has its answer, or the turn is over", look)
	}
	claim := h.gens.Add(1)
	q.state, q.claim = claimed, claim
	return q.asked, func(taken bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		q := l.asked.find(id)
		switch {
		case q == nil || q.claim != claim || q.state != claimed: // the turn has seen to it
		case !taken:
			q.state = open
		case l.turn == nil: // a turn that runs says so itself
			*q = question{id: id, state: closed}
		}
	}, nil
}
