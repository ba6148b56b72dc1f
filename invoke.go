package ken

import (
	"context"
	"errors"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/run/executor/function"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
)

// Helper must be the first statement of main in a program that lets Ken run
// other programs: on Linux they are held by a helper process, which is the same
// binary started in another way. In any other process it returns at once.
func Helper() { sandbox.Helper() }

// A Function is a Go function as a capability; [Func] makes one.
type Function struct {
	// Capability describes it and may be changed until it is given to [Open]:
	// Effects say how careful to be with it, Permissions what it needs. Until
	// it says otherwise a call of it is taken to reach beyond this machine.
	Capability *capability.Capability

	// Timeout is the most that a call may take. Zero: five minutes.
	Timeout time.Duration

	made *function.Function
}

// Func makes a capability of a function. In is a struct whose JSON names and
// jsonschema tags make the schema of its arguments; Out is a string, a
// [capability.Result], or anything that JSON can hold. An error of f is a
// failed result that a model can read. f must return soon after its context
// ends.
func Func[In, Out any](name, description string, f func(ctx context.Context, in In) (Out, error)) (*Function, error) {
	made, err := function.Func(name, description, f)
	if err != nil {
		return nil, err
	}
	return &Function{Capability: &made.Capability, made: made}, nil
}

func functions(list []*Function) []*function.Function {
	var out []*function.Function
	for _, f := range list {
		f.made.Timeout = f.Timeout
		out = append(out, f.made)
	}
	return out
}

// Invoke makes a call: it is validated, judged by the rules, recorded, and
// carried out within its limits. The principal is the one who opened Ken; an
// empty Origin is a model's call, which has the least rights. The result is
// never empty: where the error is not nil it says the same in words for a model.
// Made again with the same Key, a call that has finished returns its result and
// does nothing.
//
// A call that needs approval fails with [capability.Unapproved]. [Ticket] returns
// the id of the approval request, [Ken.Answer] answers it, and the call is then
// made again.
func (k *Ken) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	view := k.app.Door.ViewFor(door.Viewer{Principal: k.app.Principal, Mode: call.Mode, Origin: call.Origin, Surface: policy.SurfaceLibrary})
	return k.app.Door.Invoke(ctx, view, call)
}

// Ticket returns the id of the question that waits for a person, where err is of
// a call that does.
func Ticket(err error) (id string, ok bool) {
	q, ok := errors.AsType[*runner.Question](err)
	if !ok || q.Ticket == "" {
		return "", false
	}
	return q.Ticket, true
}

// An Answer is a person's word on a call that waits.
type Answer struct {
	Grant bool
	For   string    // "once", which empty means too, "session" or "always"
	Until time.Time // where set, in every session up to then

	// Covers is "call", "prefix" or "tool", for a grant of more than one call.
	// Empty: the tool for a session, this exact call for longer.
	Covers string
	Note   string
}

// Question returns what a person must know to answer, line by line: first exactly
// what will run. It came from outside and is not fit for a terminal as it is.
func (k *Ken) Question(ctx context.Context, ticket string) ([]string, error) {
	desk, err := k.app.Desk()
	if err != nil {
		return nil, err
	}
	t, err := desk.Get(ctx, ticket)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, l := range t.Lines() {
		out = append(out, l.Name+": "+l.Text)
	}
	return out, nil
}

// Answer settles a question once; it goes on the record.
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
	return err
}
