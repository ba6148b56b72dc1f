package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/envelope"
	"ken/internal/talk/deliver"
	"ken/internal/talk/deliver/offers"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

const (
	secondLook = 150 * time.Millisecond // after which finding is tried once more
	recent     = 4                      // messages and turns before that count
)

// find picks what matters for the message. If that breaks, the turn goes on
// with less and says so.
func (e *Engine) find(ctx context.Context, t turn) (door.Found, door.Pending, error) {
	q := newQuery(t.setup, t.log.history(), t.log.number)
	q.Now = e.cfg.Now()
	found, pending, err := e.look(ctx, t.view, q)
	if err != nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(secondLook):
		}
		if found, pending, err = e.look(ctx, t.view, q); err == nil {
			t.out.degraded("finding capabilities worked only the second time")
		}
	}
	switch {
	case ctx.Err() != nil:
		return found, pending, ctx.Err()
	case err != nil && t.terms.Closed:
		return found, pending, &capability.Error{Kind: capability.Unavailable, Op: "find capabilities", Err: err, Fix: "see ken doctor; toolFailureMode fail_open goes on without"}
	case err != nil:
		t.out.degraded("nothing was found, because finding broke: " + err.Error() + "; " + toolDiscover + " is still there")
		return door.Found{}, door.Pending{}, nil
	}
	for _, text := range found.Degraded {
		t.out.degraded(text)
	}
	return found, pending, nil
}

func (e *Engine) look(ctx context.Context, view door.View, q door.Query) (found door.Found, pending door.Pending, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %s", untrusted.Line(fmt.Sprint(p), 200))
		}
	}()
	return e.cfg.Door.Look(ctx, view, q)
}

// newQuery asks for what fits the message and, with less weight, those before it.
func newQuery(s setup, h history, number int) door.Query {
	q := door.Query{Text: s.in.Text, Scope: s.scope(), Override: s.in.Override}
	used := map[capability.ID]bool{}
	for i := len(h.live) - 1; i >= 0; i-- {
		e := &h.live[i]
		q.Conversation += e.Tokens
		switch {
		case len(q.Before) < recent && e.Kind == session.User:
			q.Before = append(q.Before, door.Message{Role: "user", Text: textOf(e.Blocks)})
		case len(q.Before) < recent && e.Kind == session.Assistant && textOf(e.Blocks) != "":
			q.Before = append(q.Before, door.Message{Role: "assistant", Text: textOf(e.Blocks)})
		case e.Kind == session.Added && e.Turn == number-1:
			for id := range e.Shown {
				if !deliver.IsMark(id) {
					q.Shown = append(q.Shown, id)
				}
			}
		}
		if e.Kind == session.Assistant && e.Turn >= number-recent {
			for _, c := range callsOf(e.Blocks) {
				if id := named(h.known, c); id != "" && !used[id] {
					used[id] = true
					q.Used = append(q.Used, id)
				}
			}
		}
	}
	slices.Reverse(q.Before)
	return q
}

// named returns the capability that a call names, or "" if its arguments cannot be
// read.
func named(known deliver.Live, c *llm.ToolCall) capability.ID {
	if o, ok := known.Resolve(c.Name); ok {
		return o.ID
	}
	if c.Name == toolInvoke {
		in, _ := envelope.Read(c.Arguments) // empty if it cannot be read
		if o, ok := known.Resolve(in.Capability); ok {
			return o.ID
		}
		return capability.ID(in.Capability)
	}
	return ""
}

// offers returns the reader of tools for a turn.
func (e *Engine) offers(t turn) offers.Reader {
	return offers.Reader{Door: e.cfg.Door, View: t.view, Scope: t.scope(), Cache: &e.defined, Degraded: t.out.degraded}
}

// textOf returns the text of blocks.
func textOf(blocks []llm.Block) string {
	text := ""
	for _, b := range blocks {
		if b.Text != "" {
			if text != "" {
				text += "\n"
			}
			text += b.Text
		}
	}
	return text
}
