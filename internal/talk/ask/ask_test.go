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
// where it is given.
func open(t *testing.T, cfg ask.Config, reply *event.Reply) *ask.Questions {
	t.Helper()
	waiters := new(ask.Waiters)
	cfg.Waiters, cfg.Principal, cfg.Session = waiters, ada, "s"
	cfg.Emit = func(e event.Event) {
		if a, ok := e.(event.Asked); ok && reply != nil && !waiters.Deliver(ada, "s", a.ID, *reply) {
			t.Errorf("nobody waits for %s", a.ID)
		}
	}
	t.Cleanup(func() {
		if n := waiters.Len(); n != 0 {
			t.Errorf("%d questions are left behind", n)
		}
	})
	return ask.New(cfg)
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
		q := open(t, c.cfg, c.reply)
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
