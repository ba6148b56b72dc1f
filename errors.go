package ken

import (
	"errors"
	"fmt"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/run/runner"
	"ken/internal/talk/session"
)

func invalid(op, text, fix string) error {
	return &capability.Error{Kind: capability.Invalid, Op: op, Err: errors.New(text), Fix: fix}
}

// openError returns an invalid configuration as an error of kind
// [capability.Invalid], and other errors as they are.
func openError(err error) error {
	if bad, ok := errors.AsType[*config.Error](err); ok && bad != nil {
		return &capability.Error{Kind: capability.Invalid, Op: "read configuration", Err: err}
	}
	return err
}

// explain returns err with a fix in terms of this package where Ken's own is a
// command for a terminal.
func explain(err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok {
		return err
	}
	fix := e.Fix
	unknown, notFound := errors.AsType[*door.Unknown](err)
	ticket, asked := Ticket(err)
	switch {
	case asked:
		fix = fmt.Sprintf("ask a person, call Ken.Answer with %q, then make the same call again", ticket)
	case notFound && len(unknown.Near) == 0:
		fix = "Ken.All lists every id"
	case errors.Is(err, approval.ErrNoTicket):
		fix = "use the id that ken.Ticket returns for the error of Ken.Invoke; old requests are removed (approval.retain)"
	case errors.Is(err, approval.ErrScope):
		fix = "Ken.Question lists the answers that count"
	case errors.Is(err, approval.ErrSettled):
		fix = "make the call again"
	case errors.Is(err, session.ErrNone):
		fix = "use the id in Done.Session, or leave Words.Session empty to begin a session"
	case e.Kind == capability.Denied && strings.HasPrefix(e.Rule, "intents."):
		fix += "; in Go, set Call.Intent, or Call.Origin to capability.ByPerson if a person makes the call"
	}
	if fix == e.Fix {
		return err
	}
	out := *e
	out.Fix = fix
	return &out
}

// Ticket returns the id of the approval request, if err is that of a call that
// needs approval.
func Ticket(err error) (id string, ok bool) {
	q, ok := errors.AsType[*runner.Question](err)
	if !ok || q.Ticket == "" {
		return "", false
	}
	return q.Ticket, true
}
