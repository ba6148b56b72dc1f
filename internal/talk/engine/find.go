package engine

import (
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/envelope"
	"ken/internal/talk/deliver"
	"ken/internal/talk/deliver/offers"
	"ken/internal/talk/prompt"
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
func (t *turn) find() (door.Found, door.Pending, error) {
	q := t.query()
	found, pending, err := t.look(q)
	if err != nil && t.ctx.Err() == nil {
		select {
		case <-t.ctx.Done():
		case <-time.After(secondLook):
		}
		if found, pending, err = t.look(q); err == nil {
			t.notice("degraded", "finding capabilities worked only the second time")
		}
	}
	switch {
	case t.ctx.Err() != nil:
		return found, pending, t.ctx.Err()
	case err != nil && t.terms.Closed:
		return found, pending, &capability.Error{Kind: capability.Unavailable, Op: "find capabilities", Err: err, Fix: "see ken doctor; toolFailureMode fail_open goes on without"}
	case err != nil:
		t.notice("degraded", "nothing was found, because finding broke: "+err.Error()+"; "+toolDiscover+" is still there")
		return door.Found{}, door.Pending{}, nil
	}
	for _, text := range found.Degraded {
		t.notice("degraded", text)
	}
	return found, pending, nil
}

func (t *turn) look(q door.Query) (found door.Found, pending door.Pending, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it broke: %s", untrusted.Line(fmt.Sprint(p), 200))
		}
	}()
	return t.e.cfg.Door.Look(t.ctx, t.view, q)
}

// query asks for what fits the message and, less, those before it.
func (t *turn) query() door.Query {
	q := door.Query{Text: t.in.Text, Scope: t.scope(), Now: t.e.cfg.Now(), Override: t.in.Override}
	used := map[capability.ID]bool{}
	for i := len(t.live) - 1; i >= 0; i-- {
		e := &t.live[i]
		q.Conversation += e.Tokens
		switch {
		case len(q.Before) < recent && e.Kind == session.User:
			q.Before = append(q.Before, door.Message{Role: "user", Text: textOf(e.Blocks)})
		case len(q.Before) < recent && e.Kind == session.Assistant && textOf(e.Blocks) != "":
			q.Before = append(q.Before, door.Message{Role: "assistant", Text: textOf(e.Blocks)})
		case e.Kind == session.Added && e.Turn == t.number-1:
			for id := range e.Shown {
				if !deliver.IsMark(id) {
					q.Shown = append(q.Shown, id)
				}
			}
		}
		if e.Kind == session.Assistant && e.Turn >= t.number-recent {
			for _, c := range callsOf(e.Blocks) {
				if id := t.named(c); id != "" && !used[id] {
					used[id] = true
					q.Used = append(q.Used, id)
				}
			}
		}
	}
	reverse(q.Before)
	return q
}

func reverse[T any](list []T) {
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
}

// named returns the capability that a call names, or "" if its arguments cannot be
// read.
func (t *turn) named(c *llm.ToolCall) capability.ID {
	if o, ok := t.known.Resolve(c.Name); ok {
		return o.ID
	}
	if c.Name == toolInvoke {
		in, _ := envelope.Read(c.Arguments) // empty if it cannot be read
		if o, ok := t.known.Resolve(in.Capability); ok {
			return o.ID
		}
		return capability.ID(in.Capability)
	}
	return ""
}

// scope returns where a message of this turn comes from.
func (t *turn) scope() capability.Scope {
	scope := t.in.Scope
	scope.Session, scope.Mode, scope.Agent, scope.User = t.in.Session, t.in.Mode, t.in.Agent, t.in.Principal.ID
	return scope
}

// offers returns the reader of tools for this turn.
func (t *turn) offers() offers.Reader {
	return offers.Reader{
		Door: t.e.cfg.Door, View: t.view, Scope: t.scope(), Cache: &t.e.defined,
		Degraded: func(text string) { t.notice("degraded", text) },
	}
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

// tokens counts blocks.
func (t *turn) tokens(blocks []llm.Block) int { return prompt.Tokens(t.e.cfg.Count, blocks) }
