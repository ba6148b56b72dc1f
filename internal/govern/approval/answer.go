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
	Via    string               `json:"via,omitempty"`  // the MCP client in which the person answered

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
	ErrTooLarge = errors.New("the approval request is too large")
	ErrSettled  = errors.New("the request was already answered")
	ErrExpired  = errors.New("the request has expired")
	ErrScope    = errors.New("the answer is not valid for this approval request")
	ErrNotYours = errors.New("you may not answer this approval request")
	ErrEnded    = errors.New("the grant is no longer valid")
	ErrNoTicket = errors.New("approval request not found")
	ErrNoGrant  = errors.New("grant not found")

	// ErrHappened is returned by [Desk.Ask] where Question.Unless is there. It comes alone.
	ErrHappened = errors.New("the call is already known")
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
		return refuse("invalid effect %q; use %s or %s", a.Effect, Yes, No)
	}
	switch a.Scope {
	case Once:
	case Session:
		if q.Call.Session == "" {
			return refuse("the call has no session; use the scope %s", Once)
		}
	case Until, Always:
		if a.Effect == No {
			return refuse("a denial lasts at most until the end of the session; to deny for longer, add a rule to the policy section of ken.yaml")
		}
	default:
		return refuse("invalid scope %q; use %s, %s, %s or %s", a.Scope, Once, Session, Until, Always)
	}
	switch a.Covers {
	case "", CoverCall:
	case CoverTool:
		if a.Scope == Once {
			return refuse("covers %q is valid only with the scopes %s, %s and %s", a.Covers, Session, Until, Always)
		}
	case CoverPrefix:
		if a.Scope == Once || a.Effect == No || len(q.Prefix) == 0 {
			return refuse("this call offers no prefix; use covers %s or %s", CoverCall, CoverTool)
		}
	default:
		return refuse("invalid covers %q; use %s, %s or %s", a.Covers, CoverCall, CoverPrefix, CoverTool)
	}
	switch {
	case max(len(a.Note), len(a.By.ID), len(a.Via)) > longestNote:
		return refuse("the note or the name is longer than %d bytes; shorten it", longestNote)
	case (a.Scope == Until) != !a.Until.IsZero():
		return refuse("a time is required for the scope %s and not allowed for any other", Until)
	case a.Scope == Until && !now.Before(a.Until):
		return refuse("the time %s is in the past; use a later time", stamp(a.Until))
	case a.Effect == Yes && a.Scope != Once && q.Widest != Session:
		return refuse("the rule %s requires approval each time; use the scope %s", q.Rule, Once)
	}
	return nil
}
