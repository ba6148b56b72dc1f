package ken

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/run/childmode"
	"ken/internal/run/executor/function"
)

// Helper must be the first statement of main in a program that lets Ken run
// other programs or use SQLite files. Ken starts the same binary again for the
// sandbox on Linux and for each SQLite statement; there Helper does not return.
// In any other process it returns at once.
func Helper() { childmode.Run() }

// A Function is a Go function as a capability. Use [Func] to make one.
type Function struct {
	// Capability describes it and may be changed until [Open] is called:
	// Effects say how careful to be with it, Permissions what it needs. Until
	// Effects say otherwise, a call is assumed to reach beyond this machine.
	Capability *capability.Capability

	// Timeout is the longest that a call may take; zero means five minutes.
	Timeout time.Duration

	made *function.Function
}

// Func makes a capability of f. In is a struct: its JSON names and jsonschema
// tags make the schema of the arguments. Out is a string, a
// [capability.Result], or anything that encoding/json can marshal. An error of
// f becomes a failed result that a model can read. f must return soon after its
// context ends.
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) (*Function, error) {
	made, err := function.Func(name, description, f)
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "make a capability", Err: err}
	}
	return &Function{Capability: &made.Capability, made: made}, nil
}

func functions(list []*Function) ([]*function.Function, error) {
	var out []*function.Function
	for i, f := range list {
		if f == nil || f.made == nil || f.Capability == nil {
			return nil, invalid("open", fmt.Sprintf("Config.Functions[%d] is incomplete", i), "make it with ken.Func")
		}
		f.made.Capability, f.made.Timeout = *f.Capability, f.Timeout
		out = append(out, f.made)
	}
	return out, nil
}

// Invoke makes a call: it is validated, judged by the rules, recorded in the
// audit log, and carried out within its limits. Its principal is always the one
// who opened k. An empty Origin means that a model makes the call, which has
// the fewest rights. The result is never empty: if the error is not nil, the
// result says the same in words for a model. If a call with the same Key has
// finished before, Invoke returns its result and does nothing.
//
// A call that needs approval fails with [capability.Unapproved]. [Ticket] returns
// the id of the approval request, [Ken.Question] what to show a person, and
// [Ken.Answer] answers it. The call is then made again.
func (k *Ken) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	view := k.app.Door.ViewFor(door.Viewer{Principal: k.app.Principal, Mode: call.Mode, Origin: call.Origin, Surface: policy.SurfaceLibrary})
	res, err := k.app.Door.Invoke(ctx, view, call)
	return res, explain(err)
}

// An Answer is a person's answer to an approval request. The zero value denies
// the call once.
type Answer struct {
	Grant bool
	For   string    // "once", "session" or "always"; empty means once
	Until time.Time // if set, in every session until then, instead of For

	// Covers is "call", "prefix" or "tool", for a grant of more than one call.
	// Empty means the tool for a session, this exact call for longer.
	Covers string
	Note   string // goes into the audit log

	// Inputs are for [Ken.Reply] to an [AskInput]: an answer to each of
	// [Asked.Requests], as in {"action":"accept","content":{…}}.
	Inputs map[string]json.RawMessage
}

// Question returns what a person must know to answer an approval request, line
// by line, beginning with exactly what will run. The lines contain untrusted
// text: remove control characters before you print them on a terminal.
func (k *Ken) Question(ctx context.Context, ticket string) ([]string, error) {
	desk, err := k.app.Desk()
	if err != nil {
		return nil, err
	}
	t, err := desk.Get(ctx, ticket)
	if err != nil {
		return nil, explain(err)
	}
	var out []string
	for _, l := range t.Lines() {
		out = append(out, l.Name+": "+l.Text)
	}
	return out, nil
}

// Answer answers an approval request. A request is answered once; the answer
// goes into the audit log.
func (k *Ken) Answer(ctx context.Context, ticket string, a Answer) error {
	said := approval.Answer{By: k.app.Principal, Effect: approval.No, Scope: approval.Once, Until: a.Until, Note: a.Note, Covers: approval.Cover(a.Covers)}
	if a.For != "" {
		said.Scope = approval.Scope(a.For)
	}
	if a.Grant {
		said.Effect = approval.Yes
	}
	if !a.Until.IsZero() {
		said.Scope = approval.Until
	}
	_, err := k.app.Approvals.Settle(ctx, ticket, said)
	return explain(err)
}
