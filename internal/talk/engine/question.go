package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/ask"
	"ken/internal/talk/event"
)

// question asks what a call needs to go on. It reports whether to make the call
// again now; otherwise the call waits, or has its result.
func (e *Engine) question(ctx context.Context, t turn, j *pendingCall) (again bool) {
	j.rounds++
	if over(j.rounds, t.terms.Limits.Rounds) {
		j.refuse(capability.InputNeeded, string(j.call.Target), fmt.Errorf("limit reached: %d questions (chat.rounds)", j.rounds-1), "make the call again")
		t.finished(j)
		return false
	}
	if q, ok := errors.AsType[*capability.Inquiry](j.err); ok {
		return t.inquire(ctx, j, q)
	}
	q, ok := errors.AsType[*door.Question](j.err)
	switch {
	case ok && q.Name == door.AnswerConsent:
		return e.consent(ctx, t, j, q)
	case ok && q.Name == door.AnswerAgain:
		return t.runAgain(ctx, j, q)
	}
	j.over = true // an unknown kind of question
	t.finished(j)
	return false
}

// consent waits at the desk until a principal that may has answered.
func (e *Engine) consent(ctx context.Context, t turn, j *pendingCall, q *door.Question) bool {
	a := event.Asked{ID: ask.ID(t.log.number, j.number, j.rounds, event.Consent, ""), What: event.Consent, Call: &j.shown, Ticket: q.Ticket, Text: q.Text}
	if e.cfg.Ticket != nil {
		if more, err := e.cfg.Ticket(ctx, q.Ticket); err == nil {
			a.Title, a.Lines, a.Wide, a.Offers = more.Title, more.Lines, more.Wide, more.Offers
			if more.Text != "" {
				a.Text = more.Text
			}
		}
	}
	t.out.emit(a)
	wait := func() bool {
		t.waits(j, event.Consent, q.Ticket, string(j.call.Target)+" needs approval: see ken approve list; then continue the turn")
		return false
	}
	if t.ask.Alone() || e.cfg.Wait == nil || q.Ticket == "" {
		return wait()
	}
	here, stop := t.ask.UntilAlone(ctx)
	granted, err := e.cfg.Wait(here, q.Ticket)
	left := here.Err() != nil
	stop()
	if ctx.Err() != nil {
		return false
	}
	if left && errors.Is(err, context.Canceled) {
		return wait()
	}
	kind := capability.KindOf(err)
	if err != nil && kind != capability.Denied && kind != capability.Unapproved {
		t.out.degraded("the desk could not be asked: " + err.Error())
		t.waits(j, event.Consent, q.Ticket, "the desk could not be asked: "+err.Error())
		return false
	}
	t.out.emit(event.Answered{ID: a.ID, Yes: granted})
	if granted {
		return true
	}
	if err == nil {
		err = &capability.Error{Kind: capability.Denied, Op: "call", Target: string(j.call.Target), Err: errors.New("a person did not agree to it"), Fix: "do without it, or ask for something else"}
	}
	j.over, j.err = true, err
	j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: err.Error()}}}
	t.finished(j)
	return false
}

// askedBefore names the ticket that a call waited for to the desk, so that a no
// counts and is not asked about again.
func askedBefore(questions *ask.Questions, j *pendingCall) {
	if id := questions.Ticket(j.number); id != "" {
		ticket, _ := json.Marshal(id) // a text always marshals
		j.answer(map[string]json.RawMessage{door.AnswerConsent: ticket}, j.call.State)
	}
}

// runAgain asks whether to make a call again of which it is unknown whether it
// took effect.
func (t turn) runAgain(ctx context.Context, j *pendingCall, q *door.Question) bool {
	reply, ok := t.put(ctx, event.Asked{ID: ask.ID(t.log.number, j.number, j.rounds, event.Again, q.Effect), What: event.Again, Call: &j.shown, Text: q.Text}, j)
	switch {
	case !ok:
		return false
	case !reply.Yes:
		j.over = true
		j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: q.Text + ". It was not made again: look whether it happened before you do anything about it."}}}
		t.finished(j)
		return false
	}
	id, _ := json.Marshal(q.Effect) // a text always marshals
	j.answer(map[string]json.RawMessage{door.AnswerAgain: id}, j.call.State)
	return true
}

// inquire passes on what the capability itself asks.
func (t turn) inquire(ctx context.Context, j *pendingCall, q *capability.Inquiry) bool {
	reply, ok := t.put(ctx, event.Asked{ID: ask.ID(t.log.number, j.number, j.rounds, event.Inquiry, jsonText(q.Requests)), What: event.Inquiry, Call: &j.shown, Text: q.Error(), Requests: q.Requests}, j)
	if !ok {
		return false
	}
	answers := map[string]json.RawMessage{}
	for name := range q.Requests {
		if name == door.AnswerConsent || name == door.AnswerAgain {
			continue // what only Ken asks is not a server's to ask
		}
		if a, ok := reply.Answers[name]; ok && json.Valid(a) {
			answers[name] = a
		} else {
			answers[name] = json.RawMessage(`{"action":"cancel"}`)
		}
	}
	j.answer(answers, q.State)
	return true
}

// answer adds people's replies to a call. Ken's own answers stay.
func (j *pendingCall) answer(more map[string]json.RawMessage, state string) {
	all := maps.Clone(j.call.Answers)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, a := range more {
		all[name] = a
	}
	j.call.Answers, j.call.State = all, state
}

// put asks a person and waits for the reply. It returns false if there is none:
// the turn was aborted, or no person can be asked and j waits.
func (t turn) put(ctx context.Context, a event.Asked, j *pendingCall) (event.Reply, bool) {
	reply, outcome := t.ask.Put(ctx, a)
	if outcome == ask.Pending {
		t.waits(j, a.What, "", "a person must answer question "+a.ID+" first; then go on with the turn")
	}
	return reply, outcome == ask.Got
}

// Reply answers what was [event.Asked] in a session, but for consent, which is
// given at the desk. A turn that waits goes on; if none does, because it ended
// with [event.EndWaiting] or its process died, the reply is kept for when the
// turn goes on. The first reply counts.
func (e *Engine) Reply(ctx context.Context, who capability.Principal, id, question string, r event.Reply) error {
	if e.waiters.Deliver(who, id, question, r) {
		return nil
	}
	log, err := e.cfg.Sessions.Lock(ctx, who, id)
	if err != nil {
		return err
	}
	defer func() { _ = log.Release(context.WithoutCancel(ctx)) }() // it expires otherwise
	last := 0
	for _, entry := range log.Entries() {
		last = max(last, entry.Turn)
	}
	turn, ok := ask.TurnOf(question)
	if !ok || turn != last || !log.Head().Open {
		return &capability.Error{Kind: capability.NotFound, Op: "reply to", Target: question, Err: errors.New("session does not wait for this reply"), Fix: "read what it asks now"}
	}
	note := ask.Kept(question, r, false)
	note.Turn = turn
	return log.Append(ctx, note)
}
