package ken

import (
	"encoding/json"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/llm"
)

// An Event is something that happened in a turn: one of the types below, which
// are plain data.
type Event interface{ event() }

// Selected says what was found for the message, and what of it is new to the
// model.
type Selected struct {
	Selection Selection
	Added     []capability.ID // shown now, and not before in this session
	Delivery  string          // how the model can call what was found: "inline", "search", "bridge", …
	Why       string          // why it is delivered so, in one line for people
	Tokens    int             // added to the prompt
}

// Delta is a fragment of the answer, or of the model's reasoning.
type Delta struct {
	Text    string
	Thought string
}

// Started says that a call is about to be made.
type Started struct{ Call Call }

// A Call is a call of a turn: what is really called, never the envelope
// invoke_capability.
type Call struct {
	ID        string // the model's own
	Target    capability.ID
	Action    string
	Arguments []byte // JSON
	Intent    string
}

// Output is what a running call wrote.
type Output struct {
	ID   string // of the call
	Text string
}

// Asked says that the turn waits for a person. [Ken.Reply] answers it, from
// within the loop or from another goroutine. Text, Lines, Offers, Choices and
// Requests contain untrusted text.
type Asked struct {
	ID      string
	Session string // whose turn asks
	What    Question
	Call    *Call  // nil if it is about no call
	Ticket  string // of AskApproval: the approval request
	Text    string
	Lines   []Line   // what a person must know, in order
	Wide    bool     // of AskApproval: it may be granted for the session
	Offers  []Offer  // of AskApproval: what may be granted, the narrowest first
	Choices []string // of AskUser: the answers that the model suggests

	// Requests are what the capability of an AskInput asks, by name, as in
	// [capability.Inquiry]. [Answer.Inputs] answers each.
	Requests map[string]json.RawMessage
}

// A Question says what is asked.
type Question string

// The questions of a turn.
const (
	AskApproval Question = "consent"  // may this call be made?
	AskRepeat   Question = "again"    // it is unknown whether the call took effect; make it again?
	AskUser     Question = "ask"      // the model asks something (ask_user)
	AskInput    Question = "inquiry"  // the capability asks something
	AskContinue Question = "continue" // a limit was reached; continue the turn?
	AskIntent   Question = "intent"   // the model wants another intent; may it?
)

// A Line is something to know, with its name.
type Line struct{ Name, Text string }

// An Offer is one grant that a person may give. To give it, set Scope as
// [Answer.For] and Covers as [Answer.Covers].
type Offer struct {
	Scope    string   // once, session, always
	Covers   string   // call, prefix, tool
	Calls    string   // which calls it covers
	Text     string   // which calls, and for how long
	Examples []string // other calls that it would cover
}

// Answered says that a question has its answer.
type Answered struct {
	ID   string // of the question
	Yes  bool
	Text string
}

// Finished says that a call has its result, also if it was denied.
type Finished struct {
	ID     string // of the call
	Target capability.ID
	Result capability.Result
	Error  string // why it was not made; empty if it was
	Kind   string // of the error
	Took   time.Duration
}

// Intended says that the model declared an intent.
type Intended struct {
	Intent        string
	Justification string
	Chain         []string // the intents of this turn, the newest last
}

// Notice is something to know that did not stop the turn: a retry, a
// compaction, a limit.
type Notice struct {
	Name string // "retry", "compact", "prefix", "dropped", "rung", "repair", "limit", "degraded"
	Text string
}

// Step says that one request to the model is over.
type Step struct {
	Number int
	Usage  llm.Usage
	Plain  int     // input tokens that were neither read from the cache nor written to it
	Cost   float64 // in US dollars; 0 if the price is not known
	Stop   llm.StopReason
}

// Done says that the turn is over. It is the last event.
type Done struct {
	Session string
	Turn    int // its number in the session
	Reason  End
	Text    string // the whole answer
	Usage   llm.Usage
	Cost    float64 // in US dollars; 0 if the price is not known
	Steps   int     // requests to the model
	Calls   int
	Why     string // if Reason is not EndAnswer: what happened and what to do
}

// An End says why a turn is over.
type End string

// The ends of a turn.
const (
	EndAnswer  End = "answer"  // the model answered
	EndCommand End = "command" // a slash command ran
	EndWaiting End = "waiting" // a person must answer first; [Words.Continue] continues the turn
	EndLimit   End = "limit"   // of steps, mistakes, repetitions, tokens or cost
	EndAborted End = "aborted" // the context ended
	EndFailed  End = "failed"  // the model or the machine failed; the session stays valid
)

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

// event returns what the engine says about a turn of a session in the types of this package. An event of a
// kind that it does not know is nil; TestEveryEvent shows that there is none.
func (k *Ken) event(session string, happened event.Event) Event {
	switch e := happened.(type) {
	case event.Selected:
		return Selected{selection(k.app.View(), e.Found), e.Added, string(e.Delivery), e.Why, e.Tokens}
	case event.Delta:
		return Delta(e)
	case event.Started:
		return Started{Call(e.Call)}
	case event.Output:
		return Output(e)
	case event.Asked:
		return asked(session, e)
	case event.Answered:
		return Answered(e)
	case event.Finished:
		return Finished(e)
	case event.Intended:
		return Intended(e)
	case event.Notice:
		return Notice(e)
	case event.Step:
		return Step(e)
	case event.Done:
		return Done{e.Session, e.Turn, End(e.Reason), e.Text, e.Usage, e.Cost, e.Steps, e.Calls, e.Why}
	}
	return nil
}

func asked(session string, e event.Asked) Asked {
	out := Asked{
		ID: e.ID, Session: session, What: Question(e.What), Call: (*Call)(e.Call), Ticket: e.Ticket,
		Text: e.Text, Wide: e.Wide, Choices: e.Choice, Requests: e.Requests,
	}
	for _, l := range e.Lines {
		out.Lines = append(out.Lines, Line{Name: l.Name, Text: l.Text})
	}
	for _, o := range e.Offers {
		out.Offers = append(out.Offers, Offer(o))
	}
	return out
}
