package engine

import (
	"context"
	"errors"
	"fmt"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
)

// Compact shortens the history of a session now, in one large step. It needs
// the session for itself, like a turn.
func (e *Engine) Compact(ctx context.Context, who capability.Principal, id string) (event.Compacted, error) {
	c := event.Compacted{}
	ctx, t, p, err := e.lock(ctx, event.Input{Principal: who, Session: id, Text: "/compact"}, newEmitter(func(ev event.Event, _ error) bool {
		if n, ok := ev.(event.Notice); ok {
			c.Why = n.Text
		}
		return true
	}))
	if err != nil {
		return c, err
	}
	defer t.release()
	t.log.number = max(t.log.number-1, 1) // it is part of the last turn
	if t.model, err = e.cfg.Model(ctx, t.log.head(), t.out.retrying); err != nil {
		return c, err
	}
	n := t.numbers()
	h := t.log.history()
	size := prompt.Fit(h.live, h.prefix.Tokens, 0, prompt.Numbers{}).Before
	// As if the window were as full as it can be.
	n.Window, n.Condense = size, 1
	n.Reserve = max(size/100, 1)
	plan := prompt.Fit(h.live, h.prefix.Tokens, 0, n)
	c.Before, c.After, c.Why = plan.Before, plan.After, plan.Why
	if plan.Do == prompt.None {
		return c, nil
	}
	if _, err := t.compact(ctx, p, plan); err != nil {
		return c, err
	}
	c.How = "cut"
	if last := t.log.entries(); last[len(last)-1].Kind == session.Summary {
		c.How = "summed up"
	}
	return c, nil
}

// Rewind takes back the turn of a number and all after it, and gives what the
// person had said in it. What was taken back is hidden, not deleted. Effects
// are not undone.
func (e *Engine) Rewind(ctx context.Context, who capability.Principal, id string, turn int) (said string, err error) {
	_, t, _, err := e.lock(ctx, event.Input{Principal: who, Session: id, Text: "/rewind"}, newEmitter(func(event.Event, error) bool { return true }))
	if err != nil {
		return "", err
	}
	defer t.release()
	from, to := 0, 0
	// What a compaction hides is there, what a rewind hides is not.
	there := map[int]bool{}
	for _, entry := range spoken(t.log.entries()) {
		there[entry.Seq] = true
	}
	found := false
	for _, entry := range t.log.entries() {
		to = entry.Seq
		if entry.Turn < turn || entry.Kind == session.Prefix {
			continue
		}
		if from == 0 && entry.Turn == turn {
			from = entry.Seq
		}
		if entry.Turn == turn && entry.Kind == session.User && there[entry.Seq] {
			said, found = textOf(entry.Blocks), true
		}
	}
	if !found {
		return "", &capability.Error{
			Kind: capability.NotFound, Op: "rewind " + id + " to turn", Target: fmt.Sprint(turn), Err: errors.New("turn not found, or already taken back"), Fix: "see ken chat --list",
		}
	}
	t.log.number--
	t.log.log.SetHead(func(h *session.Head) { h.Open = false })
	return said, t.log.append(session.Entry{Kind: session.Rewound, From: from, To: to})
}
