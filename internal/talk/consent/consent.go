// Package consent connects the questions of a turn with the desk at which calls
// wait for approval.
package consent

import (
	"context"
	"encoding/json"
	"slices"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/talk/event"
)

// Turns passes replies to turns that run, as the engine does.
type Turns interface {
	Reply(ctx context.Context, who capability.Principal, session, ask string, r event.Reply) error
}

// Questions shows the questions of turns, and takes the answers of people. All
// fields but Change are required.
type Questions struct {
	Approvals approval.Recorded
	Turns     func() (Turns, error)

	// Change returns what a call would change, as a diff, or "". Nil: nothing is
	// shown of it.
	Change func(folder string, call capability.Call) string
}

// Lines returns all that is known of a question, and first of all what its call
// would change.
func (q Questions) Lines(t approval.Ticket) []approval.Line { return q.changed(t, t.Lines()) }

// changed puts what the call of an open question would change at the beginning of lines.
func (q Questions) changed(t approval.Ticket, lines []approval.Line) []approval.Line {
	if q.Change == nil || t.State != approval.Pending {
		return lines
	}
	text := q.Change(t.Question.Folder, t.Question.Call)
	if text == "" {
		return lines
	}
	at := 0
	if len(lines) > 0 && lines[0].Name == "capability" {
		at = 1
	}
	return slices.Insert(lines, at, approval.Line{Name: ChangeLine, Text: text})
}

// ChangeLine is the name of the line that has the diff of a call's change.
const ChangeLine = "change"

// Ticket returns what a person must know about a question at the desk.
func (q Questions) Ticket(ctx context.Context, id string) (event.Ticket, error) {
	desk, err := q.Approvals.Desk()
	if err != nil {
		return event.Ticket{}, err
	}
	t, err := desk.Get(ctx, id)
	if err != nil {
		return event.Ticket{}, err
	}
	out := event.Ticket{Title: t.Title(), Wide: t.Question.Widest == approval.Session}
	for _, o := range t.Offers {
		out.Offers = append(out.Offers, event.Offer{Scope: string(o.Scope), Covers: string(o.Covers), Calls: o.Calls, Text: o.Text, Examples: o.Examples})
	}
	for _, l := range q.changed(t, t.ConsentLines()) {
		line := event.Line{Name: l.Name, Text: l.Text}
		for _, m := range l.Marks {
			line.Marks = append(line.Marks, event.Mark(m))
		}
		out.Lines = append(out.Lines, line)
		if l.Name == "why" {
			out.Text = l.Text
		}
	}
	return out, nil
}

// Wait waits until a question has its answer, and reports whether it was granted.
func (q Questions) Wait(ctx context.Context, id string) (bool, error) {
	desk, err := q.Approvals.Desk()
	if err != nil {
		return false, err
	}
	t, err := desk.Wait(ctx, id)
	if err != nil {
		return false, err
	}
	return t.State == approval.Granted, t.Err()
}

// An Answer is what a person said to a question of a turn.
type Answer struct {
	Yes    bool
	Text   string
	Scope  approval.Scope // of consent; empty: once
	Covers approval.Cover // of consent for more than one call

	// Answers are those to an [event.Inquiry], by the question's name.
	Answers map[string]json.RawMessage
}

// Reply answers what a turn asked: consent at the desk, everything else to the
// turn itself.
func (q Questions) Reply(ctx context.Context, who capability.Principal, session string, asked event.Asked, said Answer) error {
	if asked.What == event.Consent && asked.Ticket != "" {
		answer := approval.Answer{By: who, Effect: approval.No, Scope: said.Scope, Covers: said.Covers, Note: said.Text}
		if said.Yes {
			answer.Effect = approval.Yes
		}
		if answer.Scope == "" {
			answer.Scope = approval.Once
		}
		_, err := q.Approvals.Settle(ctx, asked.Ticket, answer)
		return err
	}
	turns, err := q.Turns()
	if err != nil {
		return err
	}
	return turns.Reply(ctx, who, session, asked.ID, event.Reply{Yes: said.Yes, Text: said.Text, Answers: said.Answers})
}
