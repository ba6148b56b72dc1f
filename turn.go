package ken

import (
	"context"
	"iter"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/talk/consent"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
)

// Words are what a person says to a model.
type Words struct {
	Text   string
	Images []llm.Image

	Session string // empty begins a new one; [Done] has its id
	Mode    string // one of policy.modes; empty means that of the session
	Agent   string // one of discovery.agents; empty means that of the session
	Type    string // of the session, for cards that ask for one: "main", "isolated", …; empty means main

	// Overrides change how capabilities are found for this message.
	Overrides Overrides

	// Continue continues a turn that did not end; Text is then empty.
	Continue bool

	// Alone means that no person can answer. A call that needs approval ends
	// the turn, which can be continued later.
	Alone bool
}

// Turn sends a message to the model and returns the events until it has
// answered. The model is shown the capabilities that fit, and its calls pass
// the same rules as every other. Breaking out of the loop, or ending ctx, ends
// the turn; its session stays valid. If the error is not nil there was no turn;
// a turn that failed ends with a [Done] that says so.
func (k *Ken) Turn(ctx context.Context, w Words) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := k.turn(ctx, w, yield); err != nil {
			yield(nil, explain(err))
		}
	}
}

// turn yields the events of a turn, or returns why there is none.
func (k *Ken) turn(ctx context.Context, w Words, yield func(Event, error) bool) error {
	if !w.Continue && strings.TrimSpace(w.Text) == "" && len(w.Images) == 0 {
		return invalid("take a turn", "Words is empty", "set Text or Images, or Continue")
	}
	if err := door.Override(w.Overrides).Check(); err != nil {
		return invalid("take a turn", "Words.Overrides: "+err.Error(), "")
	}
	e, err := k.app.Engine()
	if err != nil {
		return err
	}
	if w.Session == "" {
		if w.Session, err = k.begin(ctx, w); err != nil {
			return err
		}
	}
	in := event.Input{
		Principal: k.app.Principal, Session: w.Session, Text: w.Text, Images: w.Images, Mode: w.Mode, Agent: w.Agent,
		Surface: string(policy.SurfaceLibrary), Continue: w.Continue, Alone: w.Alone,
		Scope: capability.Scope{SessionType: w.Type}, Override: door.Override(w.Overrides),
	}
	for happened, err := range e.Turn(ctx, in) {
		if err != nil {
			return err
		}
		if out := k.event(w.Session, happened); out != nil && !yield(out, nil) {
			return nil
		}
	}
	return nil
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

// Reply answers what a turn of a session asked, while the turn runs: session is
// [Asked.Session]. a.Grant is the answer to every question that takes yes or no; text is the answer to
// [AskUser], and otherwise a note.
func (k *Ken) Reply(ctx context.Context, session string, asked Asked, a Answer, text string) error {
	what := event.Asked{ID: asked.ID, What: event.Question(asked.What), Ticket: asked.Ticket}
	err := k.app.Questions.Reply(ctx, k.app.Principal, session, what, consent.Answer{
		Yes: a.Grant, Scope: approval.Scope(a.For), Covers: approval.Cover(a.Covers), Text: text, Answers: a.Inputs,
	})
	return explain(err)
}

// Rewind takes back a turn of a session, by its number, and all after it. It
// returns what was said in that turn. It does not undo what calls have done.
func (k *Ken) Rewind(ctx context.Context, session string, turn int) (string, error) {
	e, err := k.app.Engine()
	if err != nil {
		return "", err
	}
	said, err := e.Rewind(ctx, k.app.Principal, session, turn)
	return said, explain(err)
}
