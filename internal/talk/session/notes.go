package session

import (
	"encoding/json"
	"strings"

	"ken/llm"
)

// A NoteValue is what an entry of the kind [Note] says. It is one of the types
// below. [ReadNote] returns it, and its Entry method returns the entry to write.
type NoteValue interface{ Entry() Entry }

// Ended says that a turn is over.
type Ended struct {
	Reason string // a word of the engine: "answer", "waiting", …
	Why    string // what to do about it; empty if there is nothing to say
}

// Intended says that the model declared an intent.
type Intended struct {
	Intent        string
	Justification string
}

// String returns the intent and its justification in one line.
func (n Intended) String() string {
	if n.Justification == "" {
		return n.Intent
	}
	return n.Intent + ": " + n.Justification
}

// OpenQuestion is a question that has no answer yet.
type OpenQuestion struct{ Text string }

// Waiting says what a call of the turn waits for. It holds until [Resumed] is
// written.
type Waiting struct {
	Call     int    `json:"call"` // its number in the turn
	Ticket   string `json:"ticket,omitempty"`
	Question string `json:"what,omitempty"`
	Begun    []int  `json:"begun,omitempty"` // calls after it that were begun beside it
}

// Resumed says that the calls that waited are made now.
type Resumed struct{}

// Replied is a person's reply to a question of the turn.
type Replied struct {
	Ask   string          `json:"ask"` // the id of the question
	Reply json.RawMessage `json:"reply"`
	Used  bool            `json:"used,omitempty"` // it no longer counts
}

// DeliveryRefused says that the provider refused a delivery mode for a model.
type DeliveryRefused struct{ Mode, Model string }

// Command is a slash command as it was typed. It follows the entry of the kind
// [User], which has only its beginning.
type Command struct{ Line string }

// CommandResult says what a slash command came to. It stands before the entry
// of the kind [Added] that has its output.
type CommandResult struct {
	ID     string `json:"id"`
	Failed bool   `json:"failed,omitempty"`
	Kind   string `json:"kind,omitempty"` // of the error, if the call was denied or not approved
	Job    string `json:"job,omitempty"`  // that makes the call later
}

// CallRefused says that a call was denied or not approved. It stands before the
// entry of the kind [Results] that has the call's result.
type CallRefused struct{ ID, Kind string }

// Unanswered is a request to the model without an answer. Its entry has the
// usage and the cost of the request.
type Unanswered struct{}

// SessionType is the type that a session was begun with.
type SessionType struct{ Type string }

// The names of notes in a session.
const (
	nameEnded           = "end"
	nameIntended        = "intent"
	nameOpenQuestion    = "question"
	nameWaiting         = "ticket"
	nameResumed         = "resumed"
	nameReplied         = "reply"
	nameDeliveryRefused = "rung"
	nameCommand         = "command"
	nameCommandResult   = "commandResult"
	nameCallRefused     = "refused"
	nameUnanswered      = "step"
	nameSessionType     = "sessionType"
)

func noteEntry(name, text string) Entry { return Entry{Kind: Note, Name: name, Text: text} }

// jsonEntry returns a note whose text is JSON; the values here always marshal.
func jsonEntry(name string, v any) Entry {
	text, _ := json.Marshal(v)
	return noteEntry(name, string(text))
}

// Entry returns the note. Its blocks say why, if there is something to say.
func (n Ended) Entry() Entry {
	e := noteEntry(nameEnded, n.Reason)
	if n.Why != "" {
		e.Blocks = []llm.Block{{Text: n.Why}}
	}
	return e
}

// Entry returns the note.
func (n Intended) Entry() Entry { return noteEntry(nameIntended, n.String()) }

// Entry returns the note.
func (n OpenQuestion) Entry() Entry { return noteEntry(nameOpenQuestion, n.Text) }

// Entry returns the note.
func (n Waiting) Entry() Entry { return jsonEntry(nameWaiting, n) }

// Entry returns the note.
func (Resumed) Entry() Entry { return noteEntry(nameResumed, "") }

// Entry returns the note.
func (n Replied) Entry() Entry { return jsonEntry(nameReplied, n) }

// Entry returns the note.
func (n DeliveryRefused) Entry() Entry { return noteEntry(nameDeliveryRefused, n.Mode+" "+n.Model) }

// Entry returns the note.
func (n Command) Entry() Entry { return noteEntry(nameCommand, n.Line) }

// Entry returns the note.
func (n CommandResult) Entry() Entry { return jsonEntry(nameCommandResult, n) }

// Entry returns the note.
func (n CallRefused) Entry() Entry { return noteEntry(nameCallRefused, n.ID+" "+n.Kind) }

// Entry returns the note, without the usage and the cost.
func (Unanswered) Entry() Entry { return noteEntry(nameUnanswered, "") }

// Entry returns the note.
func (n SessionType) Entry() Entry { return noteEntry(nameSessionType, n.Type) }

// ReadNote returns what a note says, or nil if e is not a note, or one that this
// program does not know or cannot read.
func ReadNote(e *Entry) NoteValue {
	if e.Kind != Note {
		return nil
	}
	switch e.Name {
	case nameEnded:
		n := Ended{Reason: e.Text}
		for i := range e.Blocks {
			n.Why += e.Blocks[i].Text
		}
		return n
	case nameIntended:
		intent, why, _ := strings.Cut(e.Text, ":")
		return Intended{intent, strings.TrimPrefix(why, " ")}
	case nameOpenQuestion:
		return OpenQuestion{e.Text}
	case nameWaiting:
		return fromJSON[Waiting](e.Text)
	case nameResumed:
		return Resumed{}
	case nameReplied:
		return fromJSON[Replied](e.Text)
	case nameDeliveryRefused:
		mode, model, _ := strings.Cut(e.Text, " ")
		return DeliveryRefused{mode, model}
	case nameCommand:
		return Command{e.Text}
	case nameCommandResult:
		return fromJSON[CommandResult](e.Text)
	case nameCallRefused:
		id, kind, _ := strings.Cut(e.Text, " ")
		return CallRefused{id, kind}
	case nameUnanswered:
		return Unanswered{}
	case nameSessionType:
		return SessionType{e.Text}
	}
	return nil
}

func fromJSON[N NoteValue](text string) NoteValue {
	var n N
	if json.Unmarshal([]byte(text), &n) != nil {
		return nil
	}
	return n
}
