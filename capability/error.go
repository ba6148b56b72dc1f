package capability

import (
	"errors"
	"strings"
)

// An ErrorKind is a class of failure that callers act on: each surface turns
// it into its own status in one place.
type ErrorKind uint8

const (
	Internal    ErrorKind = iota // something broke inside Ken; the zero value
	Invalid                      // the request makes no sense as written
	NotFound                     // no such capability, or none that you may see
	Denied                       // a rule forbids it
	Unapproved                   // a person must agree first
	InputNeeded                  // a question must be answered first
	Unavailable                  // it exists but cannot be used now
	Conflict                     // it changed since it was looked at
	Timeout                      // it took too long and was stopped
	Upstream                     // a server or service behind the capability failed during the call; the effect is unknown
)

var errorKindNames = [...]string{
	"internal", "invalid", "not found", "denied", "unapproved",
	"input needed", "unavailable", "conflict", "timeout", "upstream",
}

func (k ErrorKind) String() string {
	if int(k) < len(errorKindNames) {
		return errorKindNames[k]
	}
	return "internal"
}

// An Error is a failure or refusal of Ken itself. It holds no secrets and no
// arguments, so it may be shown and logged.
type Error struct {
	Kind   ErrorKind
	Op     string // what was being done: "load card", "decide"
	Target string // to what: an id, a path
	Rule   string // the rule or setting that decided, where one did
	Fix    string // what to do about it
	Err    error  // the cause
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Target != "" {
		b.WriteString(" " + e.Target)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	} else {
		b.WriteString(": " + e.Kind.String())
	}
	if e.Rule != "" {
		b.WriteString(" (" + e.Rule + ")")
	}
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's tree, or Internal.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
