package session_test

import (
	"reflect"
	"testing"

	"ken/internal/talk/session"
	"ken/llm"
)

// TestNoteValues: each note is written as sessions have it, and read back. The texts
// are those of sessions that exist, so they never change.
func TestNoteValues(t *testing.T) {
	for _, c := range []struct {
		note       session.NoteValue
		name, text string
		blocks     []llm.Block
	}{
		{session.Ended{Reason: "answer"}, "end", "answer", nil},
		{session.Ended{Reason: "failed", Why: "no key"}, "end", "failed", []llm.Block{{Text: "no key"}}},
		{session.Intended{Intent: "edit"}, "intent", "edit", nil},
		{session.Intended{Intent: "edit", Justification: "the: file"}, "intent", "edit: the: file", nil},
		{session.OpenQuestion{Text: "Which?"}, "question", "Which?", nil},
		{session.Waiting{Call: 2, Ticket: "t", Question: "consent", Begun: []int{3}}, "ticket", `{"call":2,"ticket":"t","what":"consent","begun":[3]}`, nil},
		{session.Resumed{}, "resumed", "", nil},
		{session.Replied{Ask: "1.1.1.ask", Reply: []byte(`{"yes":true}`), Used: true}, "reply", `{"ask":"1.1.1.ask","reply":{"yes":true},"used":true}`, nil},
		{session.DeliveryRefused{Mode: "inline", Model: "a model"}, "rung", "inline a model", nil},
		{session.Command{Line: "/greet you"}, "command", "/greet you", nil},
		{session.CommandResult{ID: "command_1", Failed: true, Kind: "denied"}, "commandResult", `{"id":"command_1","failed":true,"kind":"denied"}`, nil},
		{session.CallRefused{ID: "c1", Kind: "denied"}, "refused", "c1 denied", nil},
		{session.Unanswered{}, "step", "", nil},
		{session.SessionType{Type: "main"}, "sessionType", "main", nil},
	} {
		e := session.Entry{Kind: session.Note, Name: c.name, Text: c.text, Blocks: c.blocks}
		if got := c.note.Entry(); !reflect.DeepEqual(got, e) {
			t.Errorf("%#v is written as %+v, want %+v", c.note, got, e)
		}
		if got := session.ReadNote(&e); !reflect.DeepEqual(got, c.note) {
			t.Errorf("note %s %q is read as %#v, want %#v", c.name, c.text, got, c.note)
		}
	}
	for _, e := range []session.Entry{
		{Kind: session.User, Name: "end"}, {Kind: session.Note, Name: "of tomorrow"},
		{Kind: session.Note, Name: "ticket", Text: "{"}, {Kind: session.Note, Name: "reply", Text: `{"ask":1}`}, {Kind: session.Note, Name: "commandResult", Text: "-"},
	} {
		if got := session.ReadNote(&e); got != nil {
			t.Errorf("%+v is read as %#v, want nothing", e, got)
		}
	}
}
