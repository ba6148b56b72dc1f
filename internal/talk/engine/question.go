package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
)

// question asks what a call needs to go on. It reports whether to make the call
// again now; otherwise the call waits, or has its result.
func (t *turn) question(j *job) (again bool) {
	j.rounds++
	if over(j.rounds, t.terms.Limits.Rounds) {
		j.refuse(capability.InputNeeded, string(j.call.Target), fmt.Errorf("it asked %d times, which is the limit (chat.rounds)", j.rounds-1), "make the call again")
		t.finished(j)
		return false
	}
	if q, ok := errors.AsType[*capability.Inquiry](j.err); ok {
		return t.inquire(j, q)
	}
	q, ok := errors.AsType[*door.Question](j.err)
	switch {
	case ok && q.Name == door.AnswerConsent:
		return t.consent(j, q)
	case ok && q.Name == door.AnswerAgain:
		return t.runAgain(j, q)
	}
	j.over = true // nobody here knows what it asks
	t.finished(j)
	return false
}

// askID names a question of a call, the same when the call is made again after
// a crash and asks the same. A reply to anything else is no answer to it: the
// id has the kind of the question and, where it has one, what it is about.
func (t *turn) askID(j *job, what event.Question, about string) string {
	id := fmt.Sprintf("%d.%d.%d.%s", t.number, j.number, j.rounds, what)
	if about != "" {
		id += "." + hashOf(about)
	}
	return id
}

// consent waits at the desk until somebody who may has answered.
func (t *turn) consent(j *job, q *door.Question) bool {
	a := event.Asked{ID: t.askID(j, event.Consent, ""), What: event.Consent, Call: &j.shown, Ticket: q.Ticket, Text: q.Text}
	if t.e.cfg.Ticket != nil {
		if more, err := t.e.cfg.Ticket(t.ctx, q.Ticket); err == nil {
			a.Lines, a.Wide, a.Offers = more.Lines, more.Wide, more.Offers
			if more.Text != "" {
				a.Text = more.Text
			}
		}
	}
	t.emit(a)
	wait := func() bool {
		t.waits(j, event.Consent, q.Ticket, "a person must agree to "+string(j.call.Target)+" first: ken approve list; then go on with the turn")
		return false
	}
	if t.alone() || t.e.cfg.Wait == nil || q.Ticket == "" {
		return wait()
	}
	ctx, stop := t.untilAlone()
	granted, err := t.e.cfg.Wait(ctx, q.Ticket)
	left := ctx.Err() != nil
	stop()
	if t.ctx.Err() != nil {
		return false
	}
	if left && errors.Is(err, context.Canceled) {
		return wait()
	}
	kind := capability.KindOf(err)
	if err != nil && kind != capability.Denied && kind != capability.Unapproved {
		t.notice("degraded", "the desk could not be asked: "+err.Error())
		t.waits(j, event.Consent, q.Ticket, "the desk could not be asked: "+err.Error())
		return false
	}
	t.emit(event.Answered{ID: a.ID, Yes: granted})
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
func (t *turn) askedBefore(j *job) {
	if id := t.tickets[j.number]; id != "" {
		ticket, _ := json.Marshal(id) // a text always marshals
		j.answer(map[string]json.RawMessage{door.AnswerConsent: ticket}, j.call.State)
	}
}

// runAgain asks whether a call of which nobody knows whether it had its effect
// is to be made again.
func (t *turn) runAgain(j *job, q *door.Question) bool {
	reply, ok := t.put(event.Asked{ID: t.askID(j, event.Again, q.Effect), What: event.Again, Call: &j.shown, Text: q.Text}, j)
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
func (t *turn) inquire(j *job, q *capability.Inquiry) bool {
	reply, ok := t.put(event.Asked{ID: t.askID(j, event.Inquiry, jsonText(q.Requests)), What: event.Inquiry, Call: &j.shown, Text: q.Error(), Requests: q.Requests}, j)
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

// answer gives a call what people replied. What belongs to Ken itself stays.
func (j *job) answer(more map[string]json.RawMessage, state string) {
	all := maps.Clone(j.call.Answers)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for name, a := range more {
		all[name] = a
	}
	j.call.Answers, j.call.State = all, state
}

// alone reports whether nobody is there to ask.
func (t *turn) alone() bool {
	select {
	case <-t.in.Leave:
		return true
	default:
		return t.in.Alone
	}
}

// untilAlone returns a context that ends with the turn's, and when nobody is there
// to ask any more.
func (t *turn) untilAlone() (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(t.ctx)
	if t.in.Leave != nil {
		go func() {
			select {
			case <-t.in.Leave:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, stop
}

// put asks a person and waits for the reply. It is not ok where there is none:
// the turn was aborted, or nobody is there and j waits.
//
// A reply is kept, so that nobody must say twice what they said. One that lets
// something happen once more counts once: it is used up before that happens.
func (t *turn) put(a event.Asked, j *job) (event.Reply, bool) {
	once := a.What == event.Again || a.What == event.GoOn
	if r, ok := t.replies[a.ID]; ok {
		if once {
			delete(t.replies, a.ID)
			if err := t.append(replied(a.ID, r, true)); err != nil {
				return r, false
			}
		}
		t.emit(a)
		t.emit(event.Answered{ID: a.ID, Yes: r.Yes, Text: r.Text})
		return r, true
	}
	wait := func() (event.Reply, bool) {
		if j != nil {
			t.waits(j, a.What, "", "a person must answer question "+a.ID+" first; then go on with the turn")
		}
		return event.Reply{}, false
	}
	if t.alone() {
		t.emit(a)
		return wait()
	}
	// Whoever listens may reply before the next event.
	replies, forget := t.e.expect(t.in.Principal, t.in.Session, a.ID)
	defer forget()
	t.emit(a)
	select {
	case r := <-replies:
		t.emit(event.Answered{ID: a.ID, Yes: r.Yes, Text: r.Text})
		if once {
			return r, true
		}
		t.replies[a.ID] = r
		if err := t.append(replied(a.ID, r, false)); err != nil {
			return r, false
		}
		return r, true
	case <-t.ctx.Done():
		return event.Reply{}, false
	case <-t.in.Leave:
		return wait()
	}
}

// replied returns the note that keeps a reply.
func replied(ask string, r event.Reply, used bool) session.Entry {
	return session.Replied{Ask: ask, Reply: json.RawMessage(jsonText(r)), Used: used}.Entry()
}

func waitKey(who capability.Principal, session, ask string) string {
	return jsonText([]string{who.Tenant, who.ID, session, ask})
}

// expect returns the channel on which the reply to a question comes.
func (e *Engine) expect(who capability.Principal, session, ask string) (replies <-chan event.Reply, forget func()) {
	ch, key := make(chan event.Reply, 1), waitKey(who, session, ask)
	e.mu.Lock()
	e.waiting[key] = ch
	e.mu.Unlock()
	return ch, func() {
		e.mu.Lock()
		delete(e.waiting, key)
		e.mu.Unlock()
	}
}

// Reply answers what was [event.Asked] in a session, but for consent, which is given
// at the desk. A turn that waits goes on; where none does, because it ended with
// [event.EndWaiting] or its process died, the reply is kept for when the turn goes on.
// The first reply counts.
func (e *Engine) Reply(ctx context.Context, who capability.Principal, id, ask string, r event.Reply) error {
	e.mu.Lock()
	ch, ok := e.waiting[waitKey(who, id, ask)]
	if ok {
		select {
		case ch <- r:
		default: // it has one
		}
	}
	e.mu.Unlock()
	if ok {
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
	var turn int
	if _, err := fmt.Sscanf(ask, "%d.", &turn); err != nil || turn != last || !log.Head().Open {
		return &capability.Error{Kind: capability.NotFound, Op: "reply to", Target: ask, Err: errors.New("no turn of the session waits for that"), Fix: "read what it asks now"}
	}
	note := replied(ask, r, false)
	note.Turn = turn
	return log.Append(ctx, note)
}

// mayGoOn asks whether the turn may make one more request, where a limit says
// that a person decides.
func (t *turn) mayGoOn() (ending, bool, error) {
	if err := t.ctx.Err(); err != nil {
		return ending{}, true, err
	}
	why, raise := t.limit()
	if why == "" {
		return ending{}, false, nil
	}
	t.notice("limit", why)
	if t.alone() {
		return ending{event.EndLimit, why}, true, nil
	}
	reply, ok := t.put(event.Asked{ID: fmt.Sprintf("%d.s%d.%s.%s", t.number, t.steps, event.GoOn, hashOf(why)), What: event.GoOn, Text: why}, nil)
	switch {
	case !ok && t.ctx.Err() == nil && t.alone():
		return ending{event.EndLimit, why}, true, nil
	case !ok:
		return ending{}, true, cmpErr(t.ctx.Err())
	case !reply.Yes:
		return ending{event.EndLimit, why}, true, nil
	}
	raise()
	return ending{}, false, nil
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("the reply could not be written down")
	}
	return err
}

// limit returns the limit that is reached, and what a person's agreement does to
// it. It is empty where there is none.
func (t *turn) limit() (why string, raise func()) {
	l, a := &t.terms.Limits, &t.allowed
	tokens := t.usage.Input + t.usage.Output
	switch {
	case l.Steps > 0 && t.steps >= a.Steps:
		return fmt.Sprintf("the turn has made %d requests to the model (chat.steps)", t.steps), func() { a.Steps = t.steps + l.Steps }
	case l.Mistakes > 0 && t.mistakes >= l.Mistakes:
		return fmt.Sprintf("the model has made %d mistakes one after another (chat.mistakes)", t.mistakes), func() { t.mistakes = 0 }
	case t.looping:
		return fmt.Sprintf("the model makes the same call again and again (chat.repeats is %d)", l.Repeats), func() { t.looping, t.same, t.repeats = false, "", 0 }
	case l.Requests > 0 && t.steps >= a.Requests:
		return fmt.Sprintf("the turn has made %d requests (chat.requests)", t.steps), func() { a.Requests = t.steps + l.Requests }
	case l.Tokens > 0 && tokens >= a.Tokens:
		return fmt.Sprintf("the turn has used %d tokens (chat.tokens)", tokens), func() { a.Tokens = tokens + l.Tokens }
	case l.Cost > 0 && t.cost >= a.Cost:
		return fmt.Sprintf("the turn has cost $%.2f (chat.cost)", t.cost), func() { a.Cost = t.cost + l.Cost }
	}
	return "", nil
}

// checkRepeats refuses a call that was made too often in a row.
func (t *turn) checkRepeats(j *job) {
	args := j.call.Arguments
	if j.tool != "" {
		args = j.args
	}
	canonical, err := capability.CanonicalJSON(args)
	if err != nil {
		canonical = args
	}
	key := string(j.shown.Target) + "\x00" + j.shown.Action + "\x00" + string(canonical)
	if key != t.same {
		t.same, t.repeats = key, 0
	}
	t.repeats++
	if t.terms.Limits.Repeats > 0 && t.repeats > t.terms.Limits.Repeats {
		t.looping = true
		j.refuse(capability.Denied, string(j.shown.Target), fmt.Errorf("the same call with the same arguments was made %d times in a row (chat.repeats)", t.repeats-1), "use what it gave, do something else, or answer")
	}
}
