package approval

import (
	"errors"
	"fmt"
	"time"

	"ken/capability"
)

// A Scope says how far an answer reaches.
type Scope string

// The scopes. Each is bound to tenant, principal, workspace, capability, its hash
// and the action; Once also to the digest, and Once and Session to the session.
const (
	Once    Scope = "once"    // the very call, one time, within the desk's OnceFor
	Session Scope = "session" // within the desk's SessionFor
	Until   Scope = "until"   // in every session, up to a time
	Always  Scope = "always"  // in every session, within the desk's AlwaysFor
)

// A Cover says which calls an answer for more than one call covers.
type Cover string

// What an answer covers. Empty is the default: the exact call or, for a
// session, every call of the capability.
const (
	CoverCall   Cover = "call"   // the same call: target, action and arguments
	CoverPrefix Cover = "prefix" // commands that begin with the words of Question.Prefix
	CoverTool   Cover = "tool"   // every call of the capability and action
)

// An Effect is what an answer says.
type Effect string

// The effects.
const (
	Yes Effect = "grant"
	No  Effect = "deny"
)

// An Answer is a person's word on a ticket. A denial has the scope Once or, for
// "do not ask again in this session", Session.
type Answer struct {
	By     capability.Principal `json:"by"` // a person, known to the surface; roles are not kept
	Effect Effect               `json:"effect"`
	Scope  Scope                `json:"scope"`
	Until  time.Time            `json:"until,omitzero"` // for the scope Until
	Note   string               `json:"note,omitempty"` // at most 4,096 bytes

	// Covers is for scopes other than Once. The desk fills it in.
	Covers Cover `json:"covers,omitempty"`

	At time.Time `json:"at"` // set by the desk

	// With is the ticket that was answered, where this one was settled along
	// with it because the answer covers both.
	With string `json:"with,omitempty"`
}

// An Ending is how a grant ended.
type Ending struct {
	Grant string    `json:"grant"`
	How   string    `json:"how"` // spent, revoked, void
	At    time.Time `json:"at"`
	By    string    `json:"by,omitempty"`
	Why   string    `json:"why,omitempty"`
}

const (
	howSpent   = "spent"
	howRevoked = "revoked"
	howVoid    = "void"
)

// The kinds of refusal, for errors.Is; each comes in a *capability.Error.
var (
	ErrTooLarge = errors.New("the question is too large")
	ErrSettled  = errors.New("the request was already answered")
	ErrExpired  = errors.New("the request has expired")
	ErrScope    = errors.New("the answer does not fit the question")
	ErrNotYours = errors.New("the question is not yours to answer")
	ErrEnded    = errors.New("the grant no longer holds")
	ErrNoTicket = errors.New("approval request not found")
	ErrNoGrant  = errors.New("grant not found")
)

const longestNote = 4096

// covers returns what an answer covers, with the default filled in.
func (a *Answer) covers() Cover {
	switch {
	case a.Scope == Once || a.Effect != Yes:
		return ""
	case a.Covers != "":
		return a.Covers
	case a.Scope == Session:
		return CoverTool
	}
	return CoverCall
}

// check refuses answers that mean nothing, or that would mean something else
// than the person believes.
func (a *Answer) check(q *Question, now time.Time) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrScope, fmt.Sprintf(format, args...))
	}
	switch a.Effect {
	case Yes, No:
	default:
		return refuse("the effect is %q; say %s or %s", a.Effect, Yes, No)
	}
	switch a.Scope {
	case Once:
	case Session:
		if q.Call.Session == "" {
			return refuse("the call belongs to no session; answer %s", Once)
		}
	case Until, Always:
		if a.Effect == No {
			return refuse("a denial reaches to the end of the session at most; for longer, write a rule into the policy section of ken.yaml")
		}
	default:
		return refuse("the scope is %q; say %s, %s, %s or %s", a.Scope, Once, Session, Until, Always)
	}
	switch a.Covers {
	case "", CoverCall:
	case CoverTool:
		if a.Scope == Once {
			return refuse("covers %q goes with the scopes %s, %s and %s", a.Covers, Session, Until, Always)
		}
	case CoverPrefix:
		if a.Scope == Once || a.Effect == No || len(q.Prefix) == 0 {
			return refuse("no prefix is offered for this call; answer with covers %s or %s", CoverCall, CoverTool)
		}
	default:
		return refuse("covers is %q; say %s, %s or %s", a.Covers, CoverCall, CoverPrefix, CoverTool)
	}
	switch {
	case len(a.Note) > longestNote || len(a.By.ID) > longestNote:
		return refuse("the note or a name has more than %d bytes; make it shorter", longestNote)
	case (a.Scope == Until) != !a.Until.IsZero():
		return refuse("a time goes with the scope %s and with no other", Until)
	case a.Scope == Until && !now.Before(a.Until):
		return refuse("the time %s is over; give a later one", stamp(a.Until))
	case a.Effect == Yes && a.Scope != Once && q.Widest != Session:
		return refuse("the rule %s requires approval each time; answer %s", q.Rule, Once)
	}
	return nil
}
