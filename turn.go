package ken

import (
	"context"
	"iter"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
)

// What happens in a turn. An Event is one of the others; each is plain data.
type (
	Event    = event.Event
	Selected = event.Selected // what was found for the message
	Delta    = event.Delta    // a fragment of the answer
	Started  = event.Started  // a call is about to be made
	Output   = event.Output   // a running call wrote something
	Asked    = event.Asked    // a person must answer: see [Ken.Reply]
	Answered = event.Answered // and has
	Finished = event.Finished // a call has its result
	Intended = event.Intended // the model said what it is about to do
	Notice   = event.Notice   // something that did not stop the turn
	Step     = event.Step     // one request to the model is over
	Done     = event.Done     // the turn is over; always the last
)

// Words are what a person says to a model.
type Words struct {
	Text   string
	Images []llm.Image

	Session string // empty begins a new one; [Done] has its id
	Mode    string // of policy.modes
	Agent   string // of discovery.agents
	Type    string // of the session, for cards that ask for one: "main", which empty means too, "isolated", …

	// Continue continues a turn that did not end, instead of Text. Alone means
	// that there is no person to answer questions: a call that needs an answer
	// ends the turn, which can be continued later.
	Continue bool
	Alone    bool
}

// Turn says something to the model and returns the events until it has answered:
// it is shown what fits, and its calls pass the same rules as every other. The
// model is that of [Config.Model], or of the configuration. Leaving the loop, or
// ending ctx, ends the turn and leaves its session whole. An error means that
// there was no turn.
func (k *Ken) Turn(ctx context.Context, w Words) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		e, err := k.app.Engine()
		if err == nil && w.Session == "" {
			w.Session, err = k.begin(ctx, w)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		e.Turn(ctx, event.Input{
			Principal: k.app.Principal, Session: w.Session, Text: w.Text, Images: w.Images, Mode: w.Mode, Agent: w.Agent,
			Surface: string(policy.SurfaceLibrary), Continue: w.Continue, Alone: w.Alone,
			Scope: capability.Scope{SessionType: w.Type},
		})(yield)
	}
}

func (k *Ken) begin(ctx context.Context, w Words) (string, error) {
	sessions, err := k.app.Sessions()
	if err != nil {
		return "", err
	}
	head, err := sessions.Begin(ctx, session.Head{
		Tenant: k.app.Principal.Tenant, Principal: k.app.Principal.ID, Folder: k.app.Places.Workspace, Mode: w.Mode, Agent: w.Agent,
	})
	return head.ID, err
}

// Reply answers what a turn of a session asked: with a.Grant, and to a question
// of the model's with text.
func (k *Ken) Reply(ctx context.Context, session string, asked Asked, a Answer, text string) error {
	return k.app.Reply(ctx, k.app.Principal, session, asked, app.Answer{Yes: a.Grant, Scope: approval.Scope(a.For), Text: text})
}

// Rewind takes back a turn of a session, by its number, and all after it, and
// returns what was said in it. What calls have done is not undone.
func (k *Ken) Rewind(ctx context.Context, session string, turn int) (string, error) {
	e, err := k.app.Engine()
	if err != nil {
		return "", err
	}
	return e.Rewind(ctx, k.app.Principal, session, turn)
}
