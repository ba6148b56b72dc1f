package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// begin locks the session and makes the turn.
func (e *Engine) begin(ctx context.Context, in event.Input, yield func(event.Event, error) bool) (*turn, error) {
	in.Surface = cmp.Or(in.Surface, "chat")
	terms := e.terms()
	if err := check(in, terms.Limits); err != nil {
		return nil, err
	}
	lock := e.cfg.Sessions.Lock
	if !in.Continue && !strings.HasPrefix(strings.TrimSpace(in.Text), "/") {
		// A message has no effect before it is written down, and that locks.
		lock = e.cfg.Sessions.Prepare
	}
	log, err := lock(ctx, in.Principal, in.Session)
	if err != nil {
		return nil, err
	}
	t := &turn{e: e, in: in, terms: terms, yield: yield, log: log, head: log.Head(), replies: map[string]event.Reply{}, tickets: map[int]string{}, refused: map[model.Rung]bool{}, started: map[int]bool{}, untouched: map[int]bool{}}
	t.ctx, t.abort = context.WithCancelCause(log.Context())
	t.allowed = terms.Limits
	t.in.Agent = cmp.Or(in.Agent, t.head.Agent)
	if !in.NoMode {
		t.in.Mode = cmp.Or(in.Mode, t.head.Mode)
	}
	t.view = t.viewOf(capability.ByModel)
	if e.cfg.Intents != nil {
		t.intents.rules = e.cfg.Intents(in.Surface)
	}
	t.read()
	if err := t.place(); err != nil {
		t.release()
		return nil, err
	}
	return t, nil
}

// viewOf is what exists for whoever makes a call in this turn.
func (t *turn) viewOf(origin capability.Caller) door.View {
	v := door.Viewer{Principal: t.in.Principal, Mode: t.in.Mode, Origin: origin}
	set(&v.Surface, t.in.Surface)
	return t.e.cfg.Door.ViewFor(v)
}

// set gives a word of another package its value.
func set[W ~string](to *W, word string) { *to = W(word) }

// check looks whether an input makes sense before anything is locked.
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
		return &capability.Error{Kind: capability.Denied, Op: "take message", Target: in.Session, Err: errors.New("nobody speaks"), Fix: "say who does"}
	case in.Continue && (in.Text != "" || len(in.Images) > 0):
		return wrong("it goes on with a turn and has a message of its own", "send one or the other")
	case !in.Continue && strings.TrimSpace(in.Text) == "" && len(in.Images) == 0:
		return wrong("it is empty", "say something")
	case over(size, limits.InputBytes):
		return wrong(fmt.Sprintf("it has %d bytes, the limit is %d (chat.inputBytes)", size, limits.InputBytes), "put it into a file")
	}
	return nil
}

// place finds which turn this is, and what an earlier part of it came to.
func (t *turn) place() error {
	last := &session.Entry{}
	var end event.End // how the last turn ended; empty: it did not
	entries := t.log.Entries()
	for i := range entries {
		e := &entries[i]
		t.number = max(t.number, e.Turn)
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
		t.number++
		if t.intents.rules.Remember {
			t.recallIntent(there)
		}
		return nil
	}
	t.opened = true
	if t.number == 0 || there != t.number || last.Kind == session.Rewound {
		return &capability.Error{Kind: capability.Conflict, Op: "go on", Target: t.in.Session, Err: errors.New("no turn is open in it"), Fix: "say something"}
	}
	retried := end == event.EndAborted || end == event.EndFailed
	if end == event.EndAnswer || end == event.EndCommand {
		return &capability.Error{Kind: capability.Conflict, Op: "go on", Target: t.in.Session, Err: errors.New("its last turn is over"), Fix: "say something"}
	}
	t.recall()
	if !retried {
		t.recallIntent(t.number)
	}
	return nil
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

// recallRefusals takes the rungs that the provider refused for this model, and
// with that what the model has before it.
func (t *turn) recallRefusals() {
	entries := t.log.Entries()
	for i := range entries {
		if n, ok := session.ReadNote(&entries[i]).(session.DeliveryRefused); ok && n.Model == t.model.Name {
			t.refused[model.Rung(n.Mode)] = true
		}
	}
	t.known = t.knows()
}

// recall takes up what the turn had come to.
func (t *turn) recall() {
	for _, e := range t.log.Entries() {
		if e.Turn != t.number {
			continue
		}
		if e.Kind == session.Assistant {
			t.steps++
			t.calls += len(callsOf(e.Blocks))
		}
		switch n := session.ReadNote(&e).(type) {
		case session.Command:
			t.typed = n.Line
		case session.Waiting:
			if n.Ticket != "" {
				t.tickets[n.Call] = n.Ticket
			}
		case session.Replied:
			var r event.Reply
			switch err := json.Unmarshal(n.Reply, &r); {
			case err != nil:
			case n.Used:
				delete(t.replies, n.Ask)
			default:
				t.replies[n.Ask] = r
			}
		}
		if e.Usage != nil {
			t.spend(*e.Usage, e.Cost)
		}
	}
}

// spend counts a request to the model.
func (t *turn) spend(u llm.Usage, dollars float64) {
	t.usage.Add(u)
	t.cost += dollars
}

// recallIntent takes the intents that were declared in a turn. Where one holds
// for a request, those of earlier requests do not count.
func (t *turn) recallIntent(number int) {
	for _, e := range t.log.Entries() {
		if e.Turn != number {
			continue
		}
		if e.Kind == session.Assistant {
			t.intents.newRequest()
		}
		switch n := session.ReadNote(&e).(type) {
		case session.Unanswered:
			t.intents.newRequest()
		case session.Intended:
			t.intents.take(selection{intent: n.Intent})
		}
	}
	if number != t.number && t.intents.active != "" {
		t.intents.chain = []string{t.intents.active} // of the new turn
	}
}

// release lets the session go.
func (t *turn) release() {
	ctx, cancel := t.late()
	defer cancel()
	// What could not be let go of is free when the lock expires.
	_ = t.log.Release(ctx)
	t.abort(nil)
}

// close writes how the turn ended. Calls without a result get one, unless they
// wait for a person.
func (t *turn) close(end ending) event.Done {
	done := event.Done{
		Session: t.in.Session, Turn: t.number, Reason: end.reason, Text: t.text,
		Usage: t.usage, Cost: t.cost, Steps: t.steps, Calls: t.calls, Why: end.why,
	}
	if t.closed {
		return done
	}
	var last []session.Entry
	if end.reason != event.EndWaiting && end.reason != event.EndFailed {
		last = t.answerRest("the turn was " + string(end.reason))
	}
	last = append(last, t.endNote(end))
	if err := t.append(last...); err != nil && done.Reason != event.EndFailed {
		done.Reason, done.Why = event.EndFailed, "the end of the turn was not written: "+err.Error()
	}
	return done
}

// endNote is the note that a turn is over, with which the session's head says so
// too. Nothing is written after it: it lets the session go.
func (t *turn) endNote(end ending) session.Entry {
	t.log.SetHead(func(h *session.Head) {
		h.Open = t.opened && (end.reason == event.EndWaiting || end.reason == event.EndFailed)
	})
	t.log.Closing()
	note := session.Ended{Reason: string(end.reason)}
	if end.why != "" {
		note.Why = untrusted.Line(end.why, 1000)
	}
	return note.Entry()
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
