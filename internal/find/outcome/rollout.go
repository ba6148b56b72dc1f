package outcome

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
)

// A Mode is how far awareness is rolled out. The zero value is Monitor.
type Mode string

const (
	Monitor Mode = "monitor" // select and log, inject nothing
	Soft    Mode = "soft"    // inject in chosen types of session
	Full    Mode = "full"    // inject everywhere
)

func (m Mode) orMonitor() Mode {
	if m == "" {
		return Monitor
	}
	return m
}

// The settings that decide whether something is injected, as reasons name them.
const (
	KnobRollout      = "capabilities.rollout"
	KnobSessionTypes = "capabilities.rolloutSessionTypes"
	KnobKillSwitch   = "capabilities.killSwitch"
)

// A Gate says whether a selection may go into a prompt. The zero Gate lets
// nothing through. It is a value; copies share the Switch.
type Gate struct {
	Mode         Mode
	SessionTypes []string // of mode soft; an empty list is none
	Switch       *Switch  // nil for none
}

// Allow reports whether anything may be injected, and why. It reads no file. A
// mode that it does not know counts as Monitor.
func (g Gate) Allow(scope capability.Scope) (inject bool, reason string) {
	switch g.Mode {
	case Full:
		return true, KnobRollout + " is full"
	case Soft:
		kind := scope.SessionType
		if kind == "" {
			kind = "main"
		}
		if slices.Contains(g.SessionTypes, kind) {
			return true, fmt.Sprintf("%s is soft and %s names %s", KnobRollout, KnobSessionTypes, words(kind))
		}
		named := "nothing"
		if len(g.SessionTypes) > 0 {
			named = words(strings.Join(g.SessionTypes, ", "))
		}
		return false, fmt.Sprintf("%s is soft and %s names %s, not %s; add it there or set %s: full", KnobRollout, KnobSessionTypes, named, words(kind), KnobRollout)
	case Monitor, "":
		return false, KnobRollout + " is monitor: selected and logged, not injected; set it to soft or full to inject"
	default:
		return false, fmt.Sprintf("%s is %q, which is none of monitor, soft, full; nothing is injected", KnobRollout, words(string(g.Mode)))
	}
}

// AllowCards is Allow for cards, which the kill switch may have stopped. The
// map and briefs are not its business.
func (g Gate) AllowCards(scope capability.Scope) (inject bool, reason string) {
	inject, reason = g.Allow(scope)
	if inject && g.Switch != nil {
		if s := g.Switch.State(); s.Disabled {
			return false, s.Why
		}
	}
	return inject, reason
}
