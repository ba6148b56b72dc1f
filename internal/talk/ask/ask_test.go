package ask_test

import (
	"context"
	"errors"
	"testing"

	"ken/capability"
	"ken/internal/talk/ask"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
)

var ada = capability.Principal{ID: "ada"}

// open returns the questions of a turn whose listener replies at once with reply,
// where it is given, and the notes that they write.
func open(t *testing.T, cfg ask.Config, reply *event.Reply) (*ask.Questions, *[]session.NoteValue) {
	t.Helper()
	notes := new([]session.NoteValue)
	waiters := new(ask.Waiters)
	cfg.Waiters, cfg.Principal, cfg.Session = waiters, ada, "s"
	cfg.Emit = func(e event.Event) {
		if a, ok := e.(event.Asked); ok && reply != nil && !waiters.Deliver(ada, "s", a.ID, *reply) {
			t.Errorf("nobody waits for %s", a.ID)
		}
	}
	if cfg.Write == nil {
		cfg.Write = func(entries ...session.Entry) error {
			for i := range entries {
				*notes = append(*notes, session.ReadNote(&entries[i]))
			}
			return nil
		}
	}
	t.Cleanup(func() {
		if n := waiters.Len(); n != 0 {
			t.Errorf("%d questions are left behind", n)
		}
	})
	return ask.New(cfg), notes
}

// TestPut: a reply is kept, unless it counts once.
func TestPut(t *testing.T) {
	for what, kept := range map[event.Question]int{event.Ask: 1, event.GoOn: 0} {
		q, notes := open(t, ask.Config{}, &event.Reply{Yes: true})
		r, outcome := q.Put(t.Context(), event.Asked{ID: "1.1.1.x", What: what})
		if outcome != ask.Got || !r.Yes || len(*notes) != kept {
			t.Errorf("Put(%s) = %+v, %v with notes %v; want the reply, and %d", what, r, outcome, *notes, kept)
		}
	}
}

// TestPutRecalled: a reply that the session keeps is used. One that counts once is
// used up before anything happens.
func TestPutRecalled(t *testing.T) {
	entry := ask.Kept("3.1.1.again", event.Reply{Yes: true}, false)
	entry.Turn = 3
	q, notes := open(t, ask.Config{Alone: true}, nil)
	q.Recall([]session.Entry{entry}, 3)
	asked := event.Asked{ID: "3.1.1.again", What: event.Again}
	if r, outcome := q.Put(t.Context(), asked); outcome != ask.Got || !r.Yes || len(*notes) != 1 || !(*notes)[0].(session.Replied).Used {
		t.Errorf("Put = %+v, %v with notes %v; want the reply, used up", r, outcome, *notes)
	}
	if _, outcome := q.Put(t.Context(), asked); outcome != ask.Pending {
		t.Errorf("the second Put = %v, want pending", outcome)
	}
	used := ask.Kept("3.1.1.again", event.Reply{Yes: true}, true)
	used.Turn = 3
	q, _ = open(t, ask.Config{Alone: true}, nil)
	q.Recall([]session.Entry{entry, used}, 3)
	if _, outcome := q.Put(t.Context(), asked); outcome != ask.Pending {
		t.Errorf("Put after a restart = %v, want pending", outcome)
	}
}

// TestPutNobody: without a person the question is pending; an aborted turn, or a
// reply that cannot be written, stops.
func TestPutNobody(t *testing.T) {
	left := make(chan struct{})
	close(left)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		cfg   ask.Config
		reply *event.Reply
		want  ask.Outcome
	}{
		"alone":     {t.Context(), ask.Config{Alone: true}, nil, ask.Pending},
		"left":      {t.Context(), ask.Config{Leave: left}, nil, ask.Pending},
		"aborted":   {gone, ask.Config{}, nil, ask.Stopped},
		"unwritten": {t.Context(), ask.Config{Write: func(...session.Entry) error { return errors.New("full") }}, &event.Reply{Text: "x"}, ask.Stopped},
	} {
		q, _ := open(t, c.cfg, c.reply)
		if _, got := q.Put(c.ctx, event.Asked{ID: "1.1.1.ask", What: event.Ask}); got != c.want {
			t.Errorf("%s: Put = %v, want %v", name, got, c.want)
		}
	}
}

// TestID: an id says which turn it is of, and differs by what is asked about.
func TestID(t *testing.T) {
	a, b := ask.ID(12, 1, 1, event.Again, "effect"), ask.ID(12, 1, 1, event.Again, "another")
	if turn, ok := ask.TurnOf(a); a == b || !ok || turn != 12 {
		t.Errorf("ids %s and %s, of turn %d", a, b, turn)
	}
	if _, ok := ask.TurnOf("x"); ok {
		t.Error("x has a turn")
	}
}
