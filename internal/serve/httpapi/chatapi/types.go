package chatapi

import (
	"encoding/json"
	"time"

	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/talk/slash"
	"ken/llm"
)

// SessionList is what GET /sessions answers.
type SessionList struct {
	Sessions []SessionHead `json:"sessions"`
	Cut      bool          `json:"cut"` // there are more
	Problems []string      `json:"problems,omitempty"`
}

// SessionHead is what lists show of a session.
type SessionHead struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Folder  string    `json:"folder,omitempty"` // for operators
	Agent   string    `json:"agent,omitempty"`
	Mode    string    `json:"mode,omitempty"`
	BegunBy string    `json:"begunBy,omitempty"` // the agent that began it, as it calls itself; missing: a person did
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Turns   int       `json:"turns"`
	Usage   llm.Usage `json:"usage"`
	Cost    float64   `json:"cost,omitempty"`
	Open    bool      `json:"open,omitempty"`    // its last turn did not end
	Running bool      `json:"running,omitempty"` // a turn of it runs, on whatever replica
}

// NewSession says how a session begins. All of it may be left out.
type NewSession struct {
	Agent       string `json:"agent,omitempty"`
	Mode        string `json:"mode,omitempty"`
	SessionType string `json:"sessionType,omitempty"` // for cards that ask for one: main, isolated, …
}

// Session is a session as a person reads it. A client that follows its events from
// After misses nothing and sees nothing twice: a turn that runs is not among
// Turns.
type Session struct {
	Head    SessionHead   `json:"head"`
	Turns   []*Turn       `json:"turns"` // oldest first
	Running bool          `json:"running"`
	Asked   []event.Asked `json:"asked,omitempty"` // what waits for an answer
	After   string        `json:"after"`
	Older   int           `json:"older,omitempty"` // earlier turns were left out: those before this one
}

// Turn is one exchange as it was kept.
type Turn struct {
	Turn    int        `json:"turn"`
	Time    time.Time  `json:"time"`
	Said    string     `json:"said"`
	Images  int        `json:"images,omitempty"`
	Command bool       `json:"command,omitempty"`
	Items   []*Item    `json:"items"`
	Usage   *llm.Usage `json:"usage,omitempty"`
	Cost    float64    `json:"cost,omitempty"`
	End     string     `json:"end,omitempty"` // an [event.End]; empty: it did not end
	Why     string     `json:"why,omitempty"` // it ended so, and what to do

	Inspectable bool `json:"inspectable"`
}

// Item is a part of a turn: text, thought, call or notice, by its Type.
type Item struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"` // of text, thought and notice
	Name string `json:"name,omitempty"` // of a notice

	// Of a call.
	ID        string          `json:"id,omitempty"`
	Target    string          `json:"target,omitempty"` // what was really called
	Action    string          `json:"action,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Intent    string          `json:"intent,omitempty"`
	Result    *CallResult     `json:"result,omitempty"`
}

// CallResult is what a call came to, as the model was told.
type CallResult struct {
	Text   string `json:"text"`
	Failed bool   `json:"failed"`
	Kind   string `json:"kind,omitempty"`   // denied or unapproved: it was not made
	Handle string `json:"handle,omitempty"` // of the whole
	Images int    `json:"images,omitempty"`
	Cut    bool   `json:"cut,omitempty"` // Text is its beginning
	Job    string `json:"job,omitempty"` // that makes the call later
}

// Said is a message to a session.
type Said struct {
	Text     string        `json:"text,omitempty"`
	Images   []Image       `json:"images,omitempty"`
	Mode     string        `json:"mode,omitempty"`     // empty: the session's
	NoMode   bool          `json:"noMode,omitempty"`   // none, whatever the session has
	Continue bool          `json:"continue,omitempty"` // go on with the turn that did not end
	Override door.Override `json:"override,omitzero"`  // how to find for this message
	Delivery string        `json:"delivery,omitempty"` // counts when the session begins
	Alone    *bool         `json:"alone,omitempty"`    // no person can be asked; missing: true with wait
}

// Image is a picture.
type Image struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"` // in base64
}

// Accepted says that a turn has begun, and where its events are.
type Accepted struct {
	Session string `json:"session"`
	Events  string `json:"events"`
}

// Ended says how a turn ended, and what it asks where it waits for a person.
type Ended struct {
	Done  event.Done    `json:"done"`
	Asked []event.Asked `json:"asked,omitempty"`
}

// Nothing is the body of what needs none. It is sent all the same, as {}: a page
// of another site cannot.
type Nothing struct{}

// Aborted says whether there was a turn to abort.
type Aborted struct {
	Aborted bool `json:"aborted"`
}

// Answering is an answer to what a turn asked.
type Answering struct {
	Yes     bool                       `json:"yes,omitempty"`
	Text    string                     `json:"text,omitempty"`
	Scope   string                     `json:"scope,omitempty"`  // of consent: once, session, always
	Covers  string                     `json:"covers,omitempty"` // of consent for more than one call: call, prefix, tool
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
}

// Rewind says which turn is taken back, with all after it.
type Rewind struct {
	Turn int `json:"turn"`
}

// Retry says which turn is said again: the last one. Zero: whichever that is.
type Retry struct {
	Turn int `json:"turn,omitempty"`
}

// Rewound is what was said in a turn that was taken back.
type Rewound struct {
	Said string `json:"said"`
}

// Inspection is what happened in a turn. Now means that it was found again,
// because it was not kept.
type Inspection struct {
	Turn   int             `json:"turn"`
	Now    bool            `json:"now"`
	Events json.RawMessage `json:"events"` // an array of them
}

// Completions are ways to go on at a cursor.
type Completions struct {
	Completions []slash.Completion `json:"completions"`
}
