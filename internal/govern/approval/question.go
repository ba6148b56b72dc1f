package approval

import (
	"errors"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
)

// A Question is a call about which a person must be asked, with everything that
// the person needs to know. It is kept whole: a question that is too large for
// the store is refused, never cut.
type Question struct {
	// Call is what will be made. Answers and Live are not kept.
	Call capability.Call `json:"call"`

	// Folder is the workspace that the call is made in. The desk sets it.
	Folder string `json:"folder,omitempty"`

	// Argv is the process that will be started, Command the line that a shell
	// will read; both are empty for calls that start none.
	Argv    []string `json:"argv,omitempty"`
	Command string   `json:"command,omitempty"`

	// Shown is what the call would do, as its executor reads the arguments.
	Shown []Line `json:"shown,omitempty"`

	// Files are the programs and scripts that will run, with their digests.
	Files []policy.File `json:"files,omitempty"`

	// Unknown says why other files may decide what the call does. Their bytes are
	// not covered by an approval.
	Unknown string `json:"unknown,omitempty"`

	// AnyProgram means that the capability runs whatever program its arguments
	// name.
	AnyProgram bool `json:"anyProgram,omitempty"`

	// Prefix is the common beginning of commands that one answer may cover;
	// empty: none is offered.
	Prefix []string `json:"prefix,omitempty"`

	Surface policy.Surface `json:"surface,omitempty"`
	Risk    policy.Risk    `json:"risk"`
	Rule    string         `json:"rule,omitempty"` // that wants the consent
	Why     string         `json:"why,omitempty"`

	// Widest is the widest answer that counts: Once, which is also what the
	// zero value means, or Session for all of them.
	Widest Scope `json:"widest,omitempty"`

	// Justification is the model's own word for what it is about to do. It is
	// the only part that is cut, visibly, after a thousand characters.
	Justification string `json:"justification,omitempty"`

	// For is how long the question waits; 0 is the desk's default.
	For time.Duration `json:"-"`

	// Again is the ticket that an earlier try of this very call was given. If
	// that was denied or has expired it is the answer; otherwise a new
	// question might be put every time the same call is tried again.
	Again string `json:"-"`

	// Unless, when not empty, is a key of the store. If it is there, the question is
	// not asked, and the error is [ErrHappened].
	Unless string `json:"-"`
}

// About makes the question of a call that was decided. Argv, Command and what
// else is known besides are for the caller to add.
func About(call capability.Call, surface policy.Surface, d policy.Decision) Question {
	q := Question{Call: call, Surface: surface, Risk: d.Risk, Rule: d.Needs.Rule, Why: d.Needs.Why, Widest: Once}
	if d.Needs.Scope == policy.Session {
		q.Widest = Session
	}
	return q
}

// A State is where a ticket stands. The zero value is none.
type State string

// The states. A ticket leaves Pending once.
const (
	Pending State = "pending" // not answered yet; this is not a denial
	Granted State = "granted"
	Denied  State = "denied"
	Expired State = "expired" // not answered in time
)

// A Ticket is a question at the desk as it stood when it was read.
type Ticket struct {
	ID       string    `json:"id"`
	State    State     `json:"state"`
	Question Question  `json:"question"`
	Digest   string    `json:"digest"` // of the call: see capability.Call.Digest
	Asked    time.Time `json:"asked"`
	Expires  time.Time `json:"expires"`

	// Before, when not nil, is what was asked earlier in this session about
	// the same capability and action.
	Before *Before `json:"before,omitempty"`

	// Voided are the consents that no longer hold because the capability has
	// changed.
	Voided []Ending `json:"voided,omitempty"`

	Answer *Answer `json:"answer,omitempty"` // nil until settled

	// Offers are the grants that a person may give, the narrowest first, while
	// the ticket is pending.
	Offers []Offer `json:"offers,omitempty"`

	// Grant is the id of the grant that the answer gave; one answer can give
	// one grant to several tickets. Ended says how it ended, if it has.
	Grant string  `json:"grant,omitempty"`
	Ended *Ending `json:"ended,omitempty"`

	// Lapsed is set once the ticket was seen after its end without an answer:
	// it stays expired even if the clock is set back.
	Lapsed bool `json:"-"`

	version int64
}

func (t *Ticket) stateAt(now time.Time, last latest) State {
	switch {
	case t.Answer != nil && t.Answer.Effect == Yes:
		return Granted
	case t.Answer != nil:
		return Denied
	case t.Lapsed || last.past(t.Expires, t.version, now):
		return Expired
	}
	return Pending
}

// Err returns what the state means for the call, as an error: nil for a ticket
// that was granted. Pending and expired are [capability.Unapproved] and never
// [capability.Denied].
func (t Ticket) Err() error {
	e := &capability.Error{Kind: capability.Unapproved, Op: "approval needed for", Target: string(t.Question.Call.Target), Rule: t.Question.Rule}
	switch t.State {
	case Granted:
		return nil
	case Denied:
		e.Kind, e.Op = capability.Denied, "call"
		e.Err = fmt.Errorf("%s denied request %s at %s", t.Answer.By.ID, t.ID, stamp(t.Answer.At))
		e.Fix = "continue without this call, or make a different one"
		if t.Answer.Scope == Session {
			e.Err = fmt.Errorf("%w, for the rest of this session", e.Err)
		}
		if t.Answer.Note != "" {
			e.Err = fmt.Errorf("%w: %s", e.Err, t.Answer.Note)
		}
	case Expired:
		e.Err = fmt.Errorf("approval request %s expired at %s without an answer; this does not count as a denial", t.ID, stamp(t.Expires))
		e.Fix = "make the call again to ask again"
	case Pending:
		e.Err = fmt.Errorf("approval request %s is waiting for an answer until %s", t.ID, stamp(t.Expires))
		e.Fix = "ken approve grant " + t.ID + ", or deny; then make the same call again"
	default:
		e.Kind, e.Err = capability.Internal, errors.New("the ticket has no state")
	}
	return e
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
