package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/talk/toolcall"
	"ken/llm"
)

// A lastAnswer is the last answer that is live, and what its calls came to.
type lastAnswer struct {
	entry  session.Entry // no Seq: there is none
	calls  []*llm.ToolCall
	before int             // calls of its turn before it
	has    map[string]bool // the calls that have a result, by id
}

// openCalls finds the last answer. Its calls are numbered by all that was said in
// its turn, also by what a compaction hides, so that a call made again after a
// crash has the key that it had.
func (t turn) openCalls() lastAnswer {
	a := lastAnswer{has: map[string]bool{}}
	live := t.log.history().live
	for i := range live {
		switch e := &live[i]; e.Kind {
		case session.Assistant:
			a.entry, a.calls = *e, callsOf(e.Blocks)
			clear(a.has)
		case session.Results:
			for _, b := range e.Blocks {
				if b.Result != nil {
					a.has[b.Result.ID] = true
				}
			}
		}
	}
	entries := t.log.entries()
	for i := range entries {
		if e := &entries[i]; e.Kind == session.Assistant && e.Turn == a.entry.Turn && e.Seq < a.entry.Seq {
			a.before += len(callsOf(e.Blocks))
		}
	}
	return a
}

// whole reports whether the answer came to its own end.
func (a lastAnswer) whole() bool { return a.entry.Name != cutShort }

// cutShort is the name of an answer that ran into a limit of its length.
const cutShort = "cut"

// waits leaves a call for later and writes down that it waits for a person,
// and for what. It is pending, which is not a refusal.
func (t turn) waits(j *pendingCall, what event.Question, ticket, why string) {
	j.waits, j.why = true, why
	w := session.Waiting{Call: j.number, Ticket: ticket, Question: string(what)}
	for n := range t.log.started {
		if n > j.number {
			w.Begun = append(w.Begun, n)
		}
	}
	slices.Sort(w.Begun)
	// Without it a denied call would be asked about again and again, and it
	// would be unknown that the call was not made.
	if err := t.log.append(w.Entry()); err != nil {
		t.out.degraded("what the call waits for was not written: " + err.Error())
	}
	t.ask.SetTicket(j.number, ticket)
}

// waiting returns what a call of a turn waits for now, and whether one does.
func (t turn) waiting(number int) (w session.Waiting, ok bool) {
	entries := t.log.entries()
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.Turn != number {
			continue
		}
		switch n := session.ReadNote(e).(type) {
		case session.Resumed:
			return session.Waiting{}, false
		case session.Waiting:
			return n, true
		}
	}
	return session.Waiting{}, false
}

// resume records that calls which waited are made now. It does so before they
// are made, so that after a crash they do not look as if they still waited.
func (t turn) resume() error {
	w, ok := t.waiting(t.log.number)
	if !ok {
		return nil
	}
	a := t.openCalls()
	for i, c := range a.calls {
		if n := a.before + i + 1; !a.has[c.ID] && a.entry.Turn == t.log.number && untouched(w, n) {
			t.log.untouched[n] = true
		}
	}
	return t.log.append(session.Resumed{}.Entry())
}

// untouched reports whether a call without a result has certainly not been
// begun, since w waits.
func untouched(w session.Waiting, number int) bool {
	if number == w.Call {
		what := event.Question(w.Question)
		return what != event.Again && what != event.Inquiry
	}
	return number > w.Call && !slices.Contains(w.Begun, number)
}

// closeOpenCalls returns the entry with a result for each call that has none. It says
// that a call was not made only where that is certain; why is the reason.
func (e *Engine) closeOpenCalls(ctx context.Context, t turn, why string) []session.Entry {
	a := t.openCalls()
	w, waits := t.waiting(a.entry.Turn)
	var blocks []llm.Block
	open := 0
	for i, c := range a.calls {
		if a.has[c.ID] {
			continue
		}
		var said llm.Block
		if waits && t.log.answer != a.entry.Seq && w.Call == a.before+i+1 {
			said = unmade(c, resultOfWaiting(w, why))
		} else if waits && t.log.answer != a.entry.Seq && untouched(w, a.before+i+1) {
			said = unmade(c, "The call was not made: one before it waited for a person, and "+why+".")
		} else {
			said = e.callResult(ctx, t, &a, i, open, why)
		}
		blocks = append(blocks, said)
		open++
	}
	if blocks == nil {
		return nil
	}
	return []session.Entry{{Kind: session.Results, Blocks: blocks}}
}

// userWentOn is why the calls of an open turn are not made.
const userWentOn = "the user went on instead"

// notKnown is what the model is told of a call that may have had its effect.
const notKnown = "It is not known whether this call was made, or how far it came: its result was not written down. Look whether it happened before you make it again."

// resultOfReading is what the model is told of a call without a result that changes
// nothing.
const resultOfReading = "The call has no result: the turn was interrupted. It only reads, so nothing was changed. Call it again if you need it."

// unmade is the result of a call that gave none.
func unmade(c *llm.ToolCall, text string) llm.Block {
	return resultBlock(c, []llm.Block{{Text: text}}, true)
}

// callResult returns the result of the call at a place of an answer, which is the
// open-th of those without one.
func (e *Engine) callResult(ctx context.Context, t turn, a *lastAnswer, at, open int, why string) llm.Block {
	number, c := a.before+at+1, a.calls[at]
	here := a.entry.Turn == t.log.number
	j := e.earlierCall(t, a, at)
	switch {
	case here && t.log.started[number]:
		return e.keptResult(ctx, t, j)
	case t.log.answer == a.entry.Seq, here && t.log.untouched[number]:
		return unmade(c, "The call was not made: "+why+".")
	case own(c.Name) && c.Name != toolInvoke && c.Name != toolRead:
		return unmade(c, "The call has no result: the turn was interrupted. Call it again if you need it.")
	case open > 0 && !j.reads:
		// What changes something runs alone, and only once all before it have
		// their results.
		return unmade(c, "The call was not made: "+why+".")
	}
	return e.keptResult(ctx, t, j)
}

// keptResult returns the result of a call that may have begun: the stored one, or
// a text which says that the outcome is unknown.
func (e *Engine) keptResult(ctx context.Context, t turn, j *pendingCall) llm.Block {
	c := j.asked
	var f CallStatus
	var ok bool
	var err error
	if e.cfg.CallStatus != nil && !j.over && j.tool == "" {
		late, cancel := t.log.late() // the turn may be aborted
		defer cancel()
		f, ok, err = e.cfg.CallStatus(late, j.call)
	}
	switch {
	case err == nil && !ok && j.reads:
		return unmade(c, resultOfReading)
	case err != nil || !ok:
		return unmade(c, notKnown)
	case f.Ended:
		j.note, j.res, j.err = "The turn was interrupted after this call had ended; this is its result.", f.Result, f.Err
		if f.Err != nil && len(f.Result.Parts) == 0 {
			j.res.Parts = []capability.Part{{Text: f.Err.Error()}}
		}
		return resultBlock(c, e.resultBlocks(ctx, t, j, nil), j.res.Failed || j.err != nil)
	case f.Runs:
		return unmade(c, "The turn was interrupted while this call was running, and it is still running. Call it again when it has ended to get its result.")
	}
	return unmade(c, fmt.Sprintf("This call was started at %s and was interrupted. It is unknown whether it took effect: check before you call it again. (A person finds it in the audit log as effect %s: ken audit query --session %s.)",
		f.Began.UTC().Format(time.RFC3339), f.Effect, t.in.Session))
}

// earlierCall returns a call of an earlier answer as it was made. It is over where it
// could not be.
func (e *Engine) earlierCall(t turn, a *lastAnswer, at int) *pendingCall {
	c := a.calls[at]
	j := &pendingCall{asked: c, number: a.before + at + 1}
	call, err := toolcall.Read(c, a.whole(), t.log.history().known.Resolve)
	if err != nil {
		j.over = true
		return j
	}
	if call.Own != "" {
		j.tool, j.args, j.reads = call.Own, call.Arguments, true
		return j
	}
	j.call = capability.Call{
		Target: call.Target, Action: call.Action, Arguments: call.Arguments, Principal: t.in.Principal, Session: t.in.Session,
		Key: callKey(t.in.Session, a.entry.Turn, j.number),
	}
	if entry, err := t.view.Lookup(string(j.call.Target)); err == nil {
		j.reads = e.onlyReads(entry)
	}
	return j
}

// callKey names a call of a session for good, so that it has its effect once.
func callKey(session string, turn, number int) string {
	return fmt.Sprintf("%s/%d/%d", session, turn, number)
}

// resultOfWaiting returns the result of a call that waits and is not made.
func resultOfWaiting(w session.Waiting, why string) string {
	switch event.Question(w.Question) {
	case event.Again:
		return notKnown + " A person was asked whether to make it again, and " + why + "."
	case event.Inquiry:
		return "The call asked a person something, and " + why + ". It is not known whether it did anything before it asked; look before you make it again."
	}
	return fmt.Sprintf("The call was not made: it waited for a person, and %s. Nobody has refused it.", why)
}
