package catalog

import (
	"fmt"
	"strings"
)

// A Reason says why an entry is quarantined, unavailable or hidden, or what was
// noticed about it. It is a value that code can compare; [Reason.String] is the
// only place that turns it into a sentence.
type Reason struct {
	Kind ReasonKind
	Name string // a program, secret, tool, id or platform: see the kinds
	Text string // words from elsewhere, which are shown and never parsed
}

// A ReasonKind is a class of reasons.
type ReasonKind string

// Reasons why an entry is unavailable.
const (
	Declared         ReasonKind = "declared"          // Text: the source says so
	NoRunner         ReasonKind = "no-runner"         // Text: why nothing here runs it
	NoSender         ReasonKind = "no-sender"         // a channel without run
	WrongPlatform    ReasonKind = "wrong-platform"    // Name: the platforms it works on
	MissingProgram   ReasonKind = "missing-program"   // Name: the program
	UnusableProgram  ReasonKind = "unusable-program"  // Text: why Ken cannot run its program
	MissingSecret    ReasonKind = "missing-secret"    // Name: the secret
	NeedsUnknown     ReasonKind = "needs-unknown"     // Name: what no capability and no program is called
	NeedsUnavailable ReasonKind = "needs-unavailable" // Name: the id of what cannot be used
	HiddenByPolicy   ReasonKind = "hidden-by-policy"  // Text: the rule's words
)

// Reasons for the state of an entry.
const (
	ScanFinding      ReasonKind = "scan-finding"       // Text: the finding
	ImitatesBuiltin  ReasonKind = "imitates-builtin"   // Name: its name; Text: the tool it looks like
	TakesBuiltinName ReasonKind = "takes-builtin-name" // Name: its id; Text: the trust of its source
	ReleasedByPin    ReasonKind = "released-by-pin"
	ChangedSincePin  ReasonKind = "changed-since-pin" // Name: the hash that catalog.pins has; Text: its hash now
	NotAccepted      ReasonKind = "not-accepted"      // Name: the command that accepts it; Text: its trust
)

// String returns the reason as a sentence, with what to do about it if that is
// known.
func (r Reason) String() string {
	if r.fromElsewhere() {
		return r.Text
	}
	if fix := r.fix(); fix != "" {
		return r.Cause() + "; " + fix
	}
	return r.Cause()
}

// Cause returns the reason without what to do about it. Words from elsewhere end
// at their first semicolon, since advice usually follows it.
func (r Reason) Cause() string {
	switch r.Kind {
	case Declared, NoRunner, UnusableProgram:
		cause, _, _ := strings.Cut(r.Text, ";")
		return cause
	case NoSender:
		return "the channel has no command that sends"
	case WrongPlatform:
		return "works only on " + r.Name
	case MissingProgram:
		return "the program " + r.Name + " is not on PATH"
	case MissingSecret:
		return "the secret " + r.Name + " is not set"
	case NeedsUnknown:
		return "it needs " + r.Name + ", and no capability or program here has this name"
	case NeedsUnavailable:
		return "it needs " + r.Name + ", which cannot be used here"
	case HiddenByPolicy:
		return "hidden from models: " + r.Text
	case ImitatesBuiltin:
		return r.Name + " looks like " + r.Text + ", which is Ken's own"
	case TakesBuiltinName:
		return fmt.Sprintf("%s is a tool of Ken's own, and a %s source cannot take its place", r.Name, r.Text)
	case ReleasedByPin:
		return "released by catalog.pins"
	case ChangedSincePin:
		return fmt.Sprintf("changed since it was pinned: catalog.pins has %s, it is now %s", r.Name, r.Text)
	case NotAccepted:
		return fmt.Sprintf("a %s capability does not replace another of its id", r.Text)
	}
	return r.Text
}

// fromElsewhere reports whether the whole sentence was written elsewhere.
func (r Reason) fromElsewhere() bool {
	return r.Kind == Declared || r.Kind == NoRunner || r.Kind == UnusableProgram
}

func (r Reason) fix() string {
	switch r.Kind {
	case NoSender:
		return "add a CAPABILITY.yaml of kind channel that has one under run"
	case MissingProgram:
		return "install it"
	case MissingSecret:
		return "run ken secret set " + r.Name + ", or put it into the environment"
	case NeedsUnavailable:
		return "see ken catalog why " + r.Name
	case NotAccepted:
		return "to accept this one after a look at it: " + r.Name
	}
	return ""
}

// MarshalText returns the sentence: in JSON a reason is a string.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a sentence, as what somebody else says.
func (r *Reason) UnmarshalText(text []byte) error {
	*r = Reason{Kind: Declared, Text: string(text)}
	return nil
}

// Reasons are several reasons, the most important first.
type Reasons []Reason

// Sentences returns each reason as a sentence.
func (rs Reasons) Sentences() []string {
	if len(rs) == 0 {
		return nil
	}
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.String()
	}
	return out
}

// String returns all reasons in one line.
func (rs Reasons) String() string { return strings.Join(rs.Sentences(), "; ") }
