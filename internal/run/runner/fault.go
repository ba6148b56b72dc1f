package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ken/capability"
	"ken/internal/govern/audit"
)

// Names of questions, which are the keys of [capability.Call.Answers].
const (
	// AnswerConsent is settled at the desk; the call is made again as it was.
	AnswerConsent = "consent"

	// AnswerAgain lets a call run whose earlier try is unknown. The answer is
	// the effect's id as a JSON string, so that it covers nothing else; only a
	// surface that asked a person may set it.
	AnswerAgain = "run_again"
)

// A Question is what a person must answer before a call can go on.
type Question struct {
	Name   string `json:"name"`             // [AnswerConsent] or [AnswerAgain]
	Ticket string `json:"ticket,omitempty"` // at the desk
	Effect string `json:"effect,omitempty"` // whose outcome is unknown
	Text   string `json:"text"`
}

func (q *Question) Error() string { return q.Text }

// asError returns any failure as one of Ken's own, about the call's target.
func asError(err error, target capability.ID) *capability.Error {
	e, ok := errors.AsType[*capability.Error](err)
	switch {
	case ok && e.Target != "":
		return e
	case ok:
		about := *e
		about.Target = string(target)
		return &about
	case errors.Is(err, context.DeadlineExceeded):
		return &capability.Error{Kind: capability.Timeout, Op: "call", Target: string(target), Err: err}
	case errors.Is(err, context.Canceled):
		return &capability.Error{Kind: capability.Unavailable, Op: "call", Target: string(target), Err: err}
	}
	return &capability.Error{Kind: capability.Internal, Op: "call", Target: string(target), Err: err}
}

// gaveUp returns the end of a context as an error: a timeout, or a cancellation by
// the caller or [Runner.Stop].
func gaveUp(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		return &capability.Error{Kind: capability.Timeout, Op: "call", Err: cause, Fix: "give it more time"}
	case !errors.Is(cause, context.Canceled):
		cause = fmt.Errorf("%w: %w", context.Canceled, cause)
	}
	return &capability.Error{Kind: capability.Unavailable, Op: "call", Err: cause}
}

// refusal returns an error as a result that a model can read and act on.
func refusal(e *capability.Error) capability.Result {
	about := struct {
		Kind     string    `json:"error"`
		Rule     string    `json:"rule,omitempty"`
		Fix      string    `json:"fix,omitempty"`
		Question *Question `json:"question,omitempty"`
	}{Kind: e.Kind.String(), Rule: e.Rule, Fix: e.Fix}
	about.Question, _ = errors.AsType[*Question](e)
	parts := []capability.Part{{Text: e.Error()}}
	if raw, err := json.Marshal(about); err == nil {
		parts = append(parts, capability.Part{JSON: raw})
	}
	return capability.Result{Failed: true, Parts: parts, Meta: map[string]string{}}
}

// statusOf returns how a call ended, by its result and error.
func statusOf(res capability.Result, err error) (audit.Status, State) {
	if err == nil {
		switch {
		case res.Meta[MetaEnd] == "timed-out":
			return audit.CallTimeout, TimedOut
		case res.Meta[MetaEnd] == "cancelled":
			return audit.Cancelled, Failed
		case res.Failed:
			return audit.CallFailed, Failed
		}
		return audit.Completed, Completed
	}
	switch capability.KindOf(err) {
	case capability.Timeout:
		return audit.CallTimeout, TimedOut
	case capability.Denied:
		return audit.Denied, Failed
	case capability.Unapproved, capability.InputNeeded:
		return audit.Pending, Failed
	}
	if errors.Is(err, context.Canceled) {
		return audit.Cancelled, Failed
	}
	return audit.CallFailed, Failed
}

// guard runs f and gives a panic of our own, or of a part that was plugged in,
// as an error. What the panic said may hold arguments: it goes to note only.
func guard[T any](op string, note func(string), f func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			note(fmt.Sprint(p))
			err = &capability.Error{
				Kind: capability.Internal, Op: op, Err: errBroke, Fix: "see the audit record of this call, and report it",
			}
		}
	}()
	return f()
}

var errBroke = errors.New("internal error (panic)")
