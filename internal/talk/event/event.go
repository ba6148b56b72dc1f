// Package event has what goes into a turn and what comes out of it: the input,
// the events, and the questions and replies on the way. Surfaces import it
// instead of the engine.
package event

import (
	"encoding/json"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/model"
	"ken/llm"
)

// An Event is something that happened in a turn. It is one of the types below;
// each is plain data, and as JSON an object whose "type" is its name in small
// letters.
type Event interface{ event() }

// Selected tells what was found for the message, and what of it is new to the
// model.
type Selected struct {
	Found    door.Found         `json:"found"`
	Added    []capability.ID    `json:"added"`  // what is shown now and was not live before
	Delivery model.DeliveryMode `json:"rung"`   // how it becomes callable
	Why      string             `json:"why"`    // one line about the choice, for people
	Tokens   int                `json:"tokens"` // that were added
}

// Delta is a fragment of the answer, or of what the model thinks.
type Delta struct {
	Text    string `json:"text,omitempty"`
	Thought string `json:"thought,omitempty"`
}

// Started tells that a call is about to be made.
type Started struct {
	Call Call `json:"call"`
}

// A Call is a call as people see it: what is really called, never the envelope.
type Call struct {
	ID        string        `json:"id"` // the model's own
	Target    capability.ID `json:"target"`
	Action    string        `json:"action,omitempty"`
	Arguments []byte        `json:"arguments,omitempty"`
	Intent    string        `json:"intent,omitempty"`
}

// Output is what a running call wrote.
type Output struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Asked tells that the turn waits for a person. Consent is answered at the desk, by
// a principal that may, and everything else with a [Reply].
type Asked struct {
	ID     string   `json:"id"`
	What   Question `json:"what"`
	Call   *Call    `json:"call,omitempty"`
	Ticket string   `json:"ticket,omitempty"` // at the desk
	Title  string   `json:"title,omitempty"`  // of Consent: what is asked, in one sentence; came from outside
	Text   string   `json:"text"`             // came from outside
	Lines  []Line   `json:"lines,omitempty"`  // what a person must know, in order
	Wide   bool     `json:"wide,omitempty"`   // of Consent: it may be given for the session
	Offers []Offer  `json:"offers,omitempty"` // of Consent: what may be granted, the narrowest first
	Choice []string `json:"choice,omitempty"` // of Ask: what the model offers

	// Requests are what an Inquiry asks, as in [capability.Inquiry]; they came
	// from outside. [Reply.Answers] has an answer to each.
	Requests map[string]json.RawMessage `json:"requests,omitempty"`
}

// Told returns what is said of the question to those who may not answer it: that a
// call waits, where, and why. The lines are for the person who decides, and can hold
// what the others may not read, such as the content of a file that would change.
func (e Asked) Told() Asked {
	e.Lines, e.Offers = nil, nil
	return e
}

// A Question says what is asked.
type Question string

const (
	Consent Question = "consent"  // may this call be made?
	Again   Question = "again"    // it is unknown whether the call took effect; shall it be made again?
	Ask     Question = "ask"      // the model asks (ask_user)
	Inquiry Question = "inquiry"  // the capability itself asks
	GoOn    Question = "continue" // a limit was reached; shall the turn go on?

	Escalate Question = "intent" // the model wants another intent; may it?
)

// A Line is something to know, with its name.
type Line struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Marks []Mark `json:"marks,omitempty"` // parts of Text to look at, in order; none overlaps another
}

// A Mark is a range of bytes of a text that a person should look at, and why.
type Mark struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Why  string `json:"why"`
}

// Answered tells that what was asked has its answer.
type Answered struct {
	ID   string `json:"id"`
	Yes  bool   `json:"yes"`
	Text string `json:"text,omitempty"`
}

// Finished tells that a call has its result, a refusal too.
type Finished struct {
	ID     string            `json:"id"`
	Target capability.ID     `json:"target"`
	Result capability.Result `json:"result"`
	Error  string            `json:"error,omitempty"` // why it was not made
	Kind   string            `json:"kind,omitempty"`  // of the error
	Took   time.Duration     `json:"took"`
}

// Intended tells that the model declared an intent.
type Intended struct {
	Intent        string   `json:"intent"`
	Justification string   `json:"justification,omitempty"`
	Chain         []string `json:"chain"` // of this turn, the newest last
}

// Notice is something that a person should know and that did not stop the turn:
// a retry, a compaction, a broken prefix, a dropped layer, a limit.
type Notice struct {
	Name string `json:"name"` // "retry", "compact", "prefix", "dropped", "rung", "repair", "limit", "degraded"
	Text string `json:"text"`
}

// Step tells that one request to the model is over.
type Step struct {
	Number int            `json:"number"`
	Usage  llm.Usage      `json:"usage"`
	Plain  int            `json:"plain"` // input that was neither read from the cache nor written to it
	Cost   float64        `json:"cost,omitempty"`
	Stop   llm.StopReason `json:"stop"`
}

// Done tells that the turn is over. It is the last event of every turn that yields no
// error.
type Done struct {
	Session string    `json:"session"`
	Turn    int       `json:"turn"`
	Reason  End       `json:"reason"`
	Text    string    `json:"text"` // the answer, whole
	Usage   llm.Usage `json:"usage"`
	Cost    float64   `json:"cost,omitempty"`
	Steps   int       `json:"steps"`
	Calls   int       `json:"calls"`
	Why     string    `json:"why,omitempty"` // where the reason is not EndAnswer: what to do

	// Account is set for the function that the engine calls when a turn has ended.
	Account Account `json:"-"`
}

// An End says why a turn is over.
type End string

const (
	EndAnswer  End = "answer"  // the model answered
	EndCommand End = "command" // a slash command ran
	EndWaiting End = "waiting" // a person must answer first; the turn goes on with [Input.Continue]
	EndLimit   End = "limit"   // steps, mistakes, repetitions, tokens or cost
	EndAborted End = "aborted"
	EndFailed  End = "failed" // the model or the machine failed; the session is whole
)

// An Account is what capabilities took of the prompt in a turn, in tokens of
// one request. What is not known is 0.
type Account struct {
	Tenant        string
	Model         string // the model, as the caller writes it; empty: none was asked
	Shown         int    // that stood there for capabilities when the turn ended
	Added         int    // of these, by this turn
	AllToolTokens int    // tokens that a prompt without Ken would take, see [door.Door.AwaitAllToolTokens]
}

// A Compacted is what a compaction came to, in tokens.
type Compacted struct {
	Before int    `json:"before"`
	After  int    `json:"after"`
	How    string `json:"how"` // "summed up", "cut", or empty: there was nothing to do
	Why    string `json:"why"`
}

func (Selected) event() {}
func (Delta) event()    {}
func (Started) event()  {}
func (Output) event()   {}
func (Asked) event()    {}
func (Answered) event() {}
func (Finished) event() {}
func (Intended) event() {}
func (Notice) event()   {}
func (Step) event()     {}
func (Done) event()     {}
