package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/untrusted"
)

// A State says what the catalog makes of a capability. There is no zero state:
// an Entry that was not judged is not shown.
type State string

const (
	Active      State = "active"      // may be found and shown
	Quarantined State = "quarantined" // kept back until a person looks at it
	Shadowed    State = "shadowed"    // another capability of the same id stands before it
)

// An Entry is a capability as the catalog sees it. It does not change.
type Entry struct {
	*capability.Capability

	State State `json:"state"`

	// Reasons say why State is not Active, or what was noticed all the same.
	Reasons Reasons `json:"reasons,omitempty"`

	// Available means that nothing is missing to use it here; Missing says
	// what is.
	Available bool    `json:"available"`
	Missing   Reasons `json:"missing,omitempty"`

	// SideEffects is what [capability.Capability.HasSideEffects] says.
	SideEffects bool `json:"hasSideEffects"`

	// Withheld, when not empty, says why the body is not shown to a model.
	Withheld string `json:"withheld,omitempty"`

	// Off, if not empty, says that a package is disabled and how to enable it.
	// A model sees this line and none of the package's own text.
	Off string `json:"off,omitempty"`

	// Hidden, if not empty, says why models neither find nor see the entry. Only
	// the operator's view has such entries.
	Hidden string `json:"-"`

	// Requires are the entries that RequiredTools resolved to.
	Requires []capability.ID `json:"requires,omitempty"`

	// Standing is the place of the capability that a Shadowed one lost to.
	Standing string `json:"standing,omitempty"`
}

// Ready reports whether the entry can be used here: it is active, its package is
// enabled, and nothing is missing. Every count of what can be used counts this.
func (e *Entry) Ready() bool { return e.State == Active && e.Available && e.Off == "" }

// A judgement is what can be said of a capability by itself, so it is made
// once, however many snapshots the capability lives through.
type judgement struct {
	state    State
	reasons  Reasons
	withheld string
	entry    *Entry // the one that snapshots share, once there is one
}

func (c *Catalog) judgeLocked(cp *capability.Capability) judgement {
	if j, ok := c.judged[cp]; ok {
		return j
	}
	j := judgement{state: Active}
	for _, f := range cp.Findings {
		j.reasons = append(j.reasons, Reason{Kind: ScanFinding, Text: f.String()})
		if f.Severity == capability.Grave {
			j.state = Quarantined
		}
	}
	if taken, name := c.reservedLike(cp); name != "" && cp.Trust != capability.TrustBuiltin {
		j.state = Quarantined
		j.reasons = append(j.reasons, Reason{Kind: ImitatesBuiltin, Name: taken, Text: name})
	}
	if cp.Trust < capability.TrustUser && slices.Contains(c.cfg.Own, cp.ID) {
		j.state = Quarantined
		j.reasons = append(j.reasons, Reason{Kind: TakesBuiltinName, Name: string(cp.ID), Text: cp.Trust.String()})
	}
	switch pin, pinned := c.cfg.Pins[cp.ID]; {
	case pinned && pin == cp.Hash:
		if j.state == Quarantined {
			j.state = Active
			j.reasons = append(j.reasons, Reason{Kind: ReleasedByPin})
		}
	case pinned:
		j.state = Quarantined
		j.reasons = append(j.reasons, Reason{Kind: ChangedSincePin, Name: pin, Text: cp.Hash})
	}
	if cp.Trust < capability.TrustUser && !c.cfg.WorkspaceBodies {
		j.withheld = fmt.Sprintf("the body comes from a %s source; capabilities.allowWorkspaceCards: true would show it", cp.Trust)
	}
	c.judged[cp] = j
	return j
}

// reservedSkeletons returns what the name of each of Ken's own tools looks like.
func reservedSkeletons() map[string]string {
	out := map[string]string{}
	for _, name := range capability.OwnTools() {
		out[untrusted.Skeleton(name)] = name
	}
	return out
}

// reservedLike returns the reserved name that something about a capability could
// be taken for, and what that is; or nothing.
func (c *Catalog) reservedLike(cp *capability.Capability) (taken, name string) {
	_, local, _ := strings.Cut(string(cp.ID), ":")
	seen := ""
	var room [2 * longestImitation]byte
	for _, candidate := range append([]string{cp.Name, untrusted.Local(cp.Name), string(cp.ID), local}, cp.Aliases...) {
		if candidate == seen || utf8.RuneCountInString(candidate) > longestImitation {
			continue
		}
		seen = candidate
		if r, ok := c.reserved[string(untrusted.AppendSkeleton(room[:0], candidate))]; ok {
			return candidate, r
		}
	}
	return "", ""
}

// longestImitation is far longer than any reserved name, for those who hide
// characters in one.
const longestImitation = 64

// Verdict says in one sentence whether the entry is shown and can be used.
func (e *Entry) Verdict() string {
	switch {
	case e.State == Quarantined:
		return "it is quarantined: listed here, never shown to a model"
	case e.State == Shadowed:
		return "it is shadowed: the same id from " + e.Standing + " stands before it"
	case e.Off != "":
		return "it is " + e.Off
	case e.Hidden != "" && len(e.Missing) > 1: // what is missing by itself comes first
		return "it cannot be used here: " + e.Missing.String()
	case e.Hidden != "":
		return "models neither find nor see it, and it cannot be used here: " + e.Hidden
	case !e.Available:
		return "it may be found and shown, but cannot be used here: " + e.Missing.String()
	}
	return "it may be found and shown, and can be used here"
}

// HeldBack returns why a model is not shown the entry or its body, or "".
func (e *Entry) HeldBack() string {
	if e.State != Active {
		return fmt.Sprintf("it is %s: %s", e.State, e.Reasons)
	}
	for _, r := range e.Missing {
		if r.Kind == HiddenByPolicy {
			return r.String()
		}
	}
	return e.Withheld
}

// Why explains in sentences what holds for an entry, for the person who asks
// why they can or cannot see it.
func (e *Entry) Why() []string {
	out := []string{e.Verdict(), fmt.Sprintf("it comes from %s (%s, trust %s)", e.Origin, e.Origin.Format, e.Trust)}
	out = append(out, e.Reasons.Sentences()...)
	if e.State == Quarantined {
		out = append(out, fmt.Sprintf("to release it after a look at it: ken config set 'catalog.pins.%s' %s", e.ID, e.Hash))
	}
	if e.Withheld != "" {
		out = append(out, e.Withheld)
	}
	return out
}
