package event

import (
	"context"
	"encoding/json"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/model"
	"ken/llm"
)

// A Command is what a slash command comes to: a call that the person makes, a
// text to show, or one to say to the model.
type Command struct {
	Call capability.Call // a Target that is empty: there is none

	// Later, where set, is called with Call instead of making the call: it has
	// the call made later, and returns what is said of that.
	Later func(context.Context, capability.Call) (capability.Result, error)

	Text string
	Say  string // where set: said to the model instead of what was typed
}

// Input is what a person says to a session.
type Input struct {
	Principal capability.Principal
	Session   string // must have been begun
	Text      string
	Images    []llm.Image
	Mode      string // empty: the session's
	NoMode    bool   // no mode at all, whatever the session has
	Agent     string // empty: the session's
	Surface   string // "chat", "api", …: a word of the rules; empty: "chat"

	// Continue goes on with the turn that did not end: it crashed, was
	// aborted, or waits for a person. Text and Images are empty then.
	Continue bool

	// Alone means that no person can be asked. A question then ends the turn
	// with [EndWaiting], and its calls stay pending.
	Alone bool

	// Leave is closed when no person can be asked any more. A question that is
	// open then, or comes later, ends the turn as if it were Alone; everything
	// else goes on. Nil: never.
	Leave <-chan struct{}

	// Override changes how to find for this message.
	Override door.Override
	Delivery model.DeliveryMode // empty: the engine's; counts when the session begins
	Scope    capability.Scope
}

// A Reply is a person's answer to something [Asked] that is not settled at the
// desk.
type Reply struct {
	Yes  bool   `json:"yes"`            // of Again, GoOn and Escalate
	Text string `json:"text,omitempty"` // of Ask

	// Answers are those to an [Inquiry], by the question's name, in the words
	// of the protocol of tools: {"action":"accept","content":{…}}.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
}
