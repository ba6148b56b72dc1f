package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"ken/internal/talk/session"
	"ken/llm"
)

// A lastAnswer is the last answer that is live, and what its calls came to.
type lastAnswer struct {
	entry  session.Entry // no Seq: there is none
	calls  []*llm.ToolCall
	before int             // calls of its turn before it
	has    map[string]bool // the calls that have a result, by id
}

// last finds the last answer. Its calls are numbered by all that was said in
// its turn, also by what a compaction hides, so that a call made again after a
// crash has the key that it had.
func (t *turn) last() lastAnswer {
	a := lastAnswer{has: map[string]bool{}}
	for i := range t.live {
		switch e := &t.live[i]; e.Kind {
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
	entries := t.log.Entries()
	for i := range entries {
		if e := &entries[i]; e.Kind == session.Assistant && e.Turn == a.entry.Turn && e.Seq < a.entry.Seq {
			a.before += len(callsOf(e.Blocks))
		}
	}
	return a
}

// whole reports whether the answer came to its own end.
func (a *lastAnswer) whole() bool { return a.entry.Name != cutShort }

// cutShort is the name of an answer that ran into a limit of its length.
const cutShort = "cut"

// waited is what a call waits for, as a session keeps it. It counts until the
// turn goes on, which [noteResumed] says.
type waited struct {
	Call   int      `json:"call"`
	Ticket string   `json:"ticket,omitempty"`
	What   Question `json:"what,omitempty"`
	Begun  []int    `json:"begun,omitempty"` // calls after it that were begun beside it
}

// waits leaves a call for later and writes down that it waits for a person,
// and for what. It is pending, which is not a refusal.
func (t *turn) waits(j *job, what Question, ticket, why string) {
	j.waits, j.why = true, why
	w := waited{Call: j.number, Ticket: ticket, What: what}
	for n := range t.started {
		if n > j.number {
			w.Begun = append(w.Begun, n)
		}
	}
	slices.Sort(w.Begun)
	// Without it a no would be asked about again, for ever, and nobody would
	// know that the call was not made.
	if err := t.append(session.Entry{Kind: session.Note, Name: noteTicket, Text: jsonText(w)}); err != nil {
		t.notice("degraded", "what the call waits for was not written: "+err.Error())
	}
	if ticket != "" {
		t.tickets[j.number] = ticket
	}
}

// waiting gives what a call of a turn waits for now, and whether one does.
func (t *turn) waiting(number int) (w waited, ok bool) {
	entries := t.log.Entries()
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.Kind != session.Note || e.Turn != number {
			continue
		}
		switch e.Name {
		case noteResumed:
			return waited{}, false
		case noteTicket:
			err := json.Unmarshal([]byte(e.Text), &w)
			return w, err == nil
		}
	}
	return waited{}, false
}

// resume writes down that calls which waited are made now, before they are:
// after a crash nobody may believe that they still wait.
func (t *turn) resume() error {
	w, ok := t.waiting(t.number)
	if !ok {
		return nil
	}
	a := t.last()
	for i, c := range a.calls {
		if n := a.before + i + 1; !a.has[c.ID] && a.entry.Turn == t.number && w.untouched(n) {
			t.untouched[n] = true
		}
	}
	return t.append(session.Entry{Kind: session.Note, Name: noteResumed})
}

// untouched reports whether a call without a result has certainly not been
// begun, since w waits.
func (w *waited) untouched(number int) bool {
	if number == w.Call {
		return w.What != Again && w.What != Inquiry
	}
	return number > w.Call && !slices.Contains(w.Begun, number)
}

// answerRest gives the entry with a result for each call that has none. It says
// that a call was not made only where that is certain; why is the reason.
func (t *turn) answerRest(why string) []session.Entry {
	a := t.last()
	w, waits := t.waiting(a.entry.Turn)
	var blocks []llm.Block
	open := 0
	for i, c := range a.calls {
		if a.has[c.ID] {
			continue
		}
		text := t.fate(&a, i, open, why)
		if waits && t.mine != a.entry.Seq && w.Call == a.before+i+1 {
			text = w.told(why)
		} else if waits && t.mine != a.entry.Seq && w.untouched(a.before+i+1) {
			text = "The call was not made: one before it waited for a person, and " + why + "."
		}
		blocks = append(blocks, resultBlock(c, []llm.Block{{Text: text}}, true))
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

// fate is the result of the call at a place of an answer, which is the open-th
// of those without one.
func (t *turn) fate(a *lastAnswer, at, open int, why string) string {
	number := a.before + at + 1
	here := a.entry.Turn == t.number
	switch {
	case here && t.started[number]:
		return notKnown
	case t.mine == a.entry.Seq, here && t.untouched[number]:
		return "The call was not made: " + why + "."
	case open >= max(t.e.limits.Parallel, 1):
		// Those at once are that many, and their results are written before
		// others begin.
		return "The call was not made: " + why + "."
	case own(a.calls[at].Name) && a.calls[at].Name != toolInvoke && a.calls[at].Name != toolRead:
		return "The call has no result: the turn broke off. Make it again if it is needed."
	}
	return notKnown
}

// told is the result of a call that waits.
func (w *waited) told(why string) string {
	switch w.What {
	case Again:
		return notKnown + " A person was asked whether to make it again, and " + why + "."
	case Inquiry:
		return "The call asked a person something, and " + why + ". It is not known whether it did anything before it asked; look before you make it again."
	}
	return fmt.Sprintf("The call was not made: it waited for a person, and %s. Nobody has refused it.", why)
}
