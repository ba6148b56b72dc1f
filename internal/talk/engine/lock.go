package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/ask"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
)

// lock locks the session and returns the turn at its beginning: the context that
// ends with it, and what an earlier part of it came to if it goes on.
func (e *Engine) lock(ctx context.Context, in event.Input, out *emitter) (context.Context, turn, progress, error) {
	in.Surface = cmp.Or(in.Surface, "chat")
	terms := e.terms()
	if err := check(in, terms.Limits); err != nil {
		return ctx, turn{}, progress{}, err
	}
	lock := e.cfg.Sessions.Lock
	if !in.Continue && !strings.HasPrefix(strings.TrimSpace(in.Text), "/") {
		// A message has no effect before it is written down, and that locks.
		lock = e.cfg.Sessions.Prepare
	}
	log, err := lock(ctx, in.Principal, in.Session)
	if err != nil {
		return ctx, turn{}, progress{}, err
	}
	ctx, out.abort = context.WithCancelCause(log.Context())
	t := turn{setup: e.setup(in, terms, log.Head()), log: newTranscript(ctx, log, e.cfg.Count), out: out}
	t.ask = ask.New(ask.Config{
		Waiters: &e.waiters, Principal: in.Principal, Session: in.Session, Alone: in.Alone, Leave: in.Leave, Emit: out.emit, Write: t.log.append,
	})
	p, err := t.findPosition()
	if err != nil {
		t.release()
		return ctx, turn{}, progress{}, err
	}
	return ctx, t, p, nil
}

// setup returns what is fixed for a turn, but for its model.
func (e *Engine) setup(in event.Input, terms Terms, head session.Head) setup {
	in.Agent = cmp.Or(in.Agent, head.Agent)
	if !in.NoMode {
		in.Mode = cmp.Or(in.Mode, head.Mode)
	}
	s := setup{in: in, terms: terms}
	if e.cfg.Intents != nil {
		s.rules = e.cfg.Intents(in.Surface)
	}
	s.view = e.viewOf(s, capability.ByModel)
	return s
}

// viewOf returns what exists for the origin of a call in a turn.
func (e *Engine) viewOf(s setup, origin capability.Caller) door.View {
	v := door.Viewer{Principal: s.in.Principal, Mode: s.in.Mode, Origin: origin}
	set(&v.Surface, s.in.Surface)
	return e.cfg.Door.ViewFor(v)
}

// set assigns a word to a string type of another package.
func set[W ~string](to *W, word string) { *to = W(word) }

// release lets the session go and ends the turn's context.
func (t turn) release() {
	t.log.release()
	t.out.abort(nil)
}

// check returns an error if an input is invalid. It is called before anything is
// locked.
func check(in event.Input, limits Limits) error {
	wrong := func(text, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "take message", Target: in.Session, Err: errors.New(text), Fix: fix}
	}
	size := len(in.Text)
	for _, i := range in.Images {
		size += len(i.Data)
	}
	switch {
	case in.Principal.ID == "":
		return &capability.Error{Kind: capability.Denied, Op: "take message", Target: in.Session, Err: errors.New("missing principal"), Fix: "name the principal"}
	case in.Continue && (in.Text != "" || len(in.Images) > 0):
		return wrong("input continues a turn and also has a message", "send one or the other")
	case !in.Continue && strings.TrimSpace(in.Text) == "" && len(in.Images) == 0:
		return wrong("message is empty", "say something")
	case over(size, limits.InputBytes):
		return wrong(fmt.Sprintf("message has %d bytes, the limit is %d (chat.inputBytes)", size, limits.InputBytes), "put it into a file")
	}
	return nil
}

// findPosition finds which turn this is, and returns what an earlier part of it
// came to.
func (t turn) findPosition() (progress, error) {
	p := progress{allowed: t.terms.Limits}
	last := &session.Entry{}
	var end event.End // how the last turn ended; empty: it did not
	entries := t.log.entries()
	for i := range entries {
		e := &entries[i]
		t.log.number = max(t.log.number, e.Turn)
		// A compaction comes after a turn and does not begin or end one.
		if n, ok := session.ReadNote(e).(session.Ended); ok {
			last, end = e, event.End(n.Reason)
		} else if e.Kind == session.Rewound || isSaid(e) {
			last, end = e, ""
		}
	}
	there := 0 // the last turn that was not taken back
	for _, e := range spoken(entries) {
		if isSaid(&e) {
			there = max(there, e.Turn)
		}
	}
	if !t.in.Continue {
		t.log.number++
		if t.rules.Remember {
			if p = p.recallIntent(t.rules, entries, there); p.intents.active != "" {
				p.intents.chain = []string{p.intents.active} // of the new turn
			}
		}
		return p, nil
	}
	t.log.opened = true
	if t.log.number == 0 || there != t.log.number || last.Kind == session.Rewound {
		return p, &capability.Error{Kind: capability.Conflict, Op: "go on", Target: t.in.Session, Err: errors.New("session has no open turn"), Fix: "say something"}
	}
	if end == event.EndAnswer || end == event.EndCommand {
		return p, &capability.Error{Kind: capability.Conflict, Op: "go on", Target: t.in.Session, Err: errors.New("last turn is over"), Fix: "say something"}
	}
	p = p.recall(entries, t.log.number)
	t.ask.Recall(entries, t.log.number)
	if end != event.EndAborted && end != event.EndFailed {
		p = p.recallIntent(t.rules, entries, t.log.number)
	}
	return p, nil
}

// spoken returns what was said and not taken back, whatever a compaction hides.
func spoken(entries []session.Entry) []session.Entry {
	return session.Live(slices.DeleteFunc(slices.Clone(entries), func(e session.Entry) bool {
		return e.Kind == session.Summary || e.Kind == session.Marker
	}))
}

// isSaid reports whether an entry is a part of a turn.
func isSaid(e *session.Entry) bool {
	switch e.Kind {
	case session.User, session.Added, session.Assistant, session.Results:
		return true
	}
	return false
}

// callsOf returns the calls of an answer.
func callsOf(blocks []llm.Block) []*llm.ToolCall {
	var out []*llm.ToolCall
	for i := range blocks {
		if blocks[i].Call != nil {
			out = append(out, blocks[i].Call)
		}
	}
	return out
}
