package approval

import (
	"fmt"
	"strings"
	"time"

	"ken/internal/duration"
)

// An Offer is one grant that a person may give to a pending ticket.
type Offer struct {
	Scope  Scope `json:"scope"`
	Covers Cover `json:"covers"`

	// Calls says which calls are covered, and Text adds for how long. Examples
	// are other calls that would be covered. All contain words of the call: pass
	// them through package untrusted before showing them on a terminal or a
	// page.
	Calls    string   `json:"calls"`
	Text     string   `json:"text"`
	Examples []string `json:"examples,omitempty"`
}

// offers returns what a person may grant, the narrowest first.
func offers(q *Question, times Times) []Offer {
	list := []Offer{{Once, CoverCall, "this call", "this call, once", nil}}
	if q.Widest != Session {
		return list
	}
	add := func(c Cover, calls string, examples []string) {
		if q.Call.Session != "" {
			list = append(list, Offer{Session, c, calls, calls + ", in this session", examples})
		}
		list = append(list, Offer{Always, c, calls, fmt.Sprintf("%s, in every session%s, for %s", calls, inFolder(" ", q.Folder), days(times.AlwaysFor)), examples})
	}
	add(CoverCall, "this exact call", nil)
	if len(q.Prefix) > 0 {
		add(CoverPrefix, "commands that begin with "+CommandLine(q.Prefix), coveredBy(q.Prefix))
	}
	add(CoverTool, "every call of "+subject(q)+" with any arguments", anyCall(q))
	return list
}

// inFolder names the only folder in which a grant holds, after a separator.
func inFolder(sep, folder string) string {
	if folder == "" {
		return ""
	}
	return sep + "in " + folder
}

func subject(q *Question) string {
	return strings.TrimSpace(string(q.Call.Target) + " " + q.Call.Action)
}

// coveredBy returns example commands that begin with a prefix.
func coveredBy(prefix []string) []string {
	begin := CommandLine(prefix)
	return []string{begin, begin + " --verbose", begin + " ANY ARGUMENTS"}
}

// anyCall returns example calls of a capability that are as different as
// possible.
func anyCall(q *Question) []string {
	if q.Command != "" || q.AnyProgram {
		return []string{"git push origin main", "ls /", "any other command"}
	}
	return []string{subject(q) + " {any arguments}"}
}

// callLine returns a call in one line.
func callLine(q *Question) string {
	switch {
	case q.Command != "":
		return q.Command
	case len(q.Argv) > 0:
		return CommandLine(q.Argv)
	}
	return strings.TrimSpace(subject(q) + " " + string(q.Call.Arguments))
}

// line returns a call in one line, in the form that is stored with a grant.
func (d *Desk) line(q *Question) string {
	if d.conf.Redact == nil {
		return ""
	}
	return d.conf.Redact("", callLine(q))
}

// days formats a duration; one day is "a day".
func days(d time.Duration) string {
	if d == 24*time.Hour {
		return "a day"
	}
	return duration.Text(d)
}

// Text returns one line that says what a grant covers.
func (g *Grant) Text() string {
	about, where := strings.TrimSpace(string(g.Capability)+" "+g.Action), inFolder(", ", g.Folder)
	switch g.Covers {
	case CoverCall:
		return "this exact call of " + about + where
	case CoverPrefix:
		return "commands of " + about + " that begin with " + CommandLine(g.Prefix) + where
	case CoverTool:
		return "every call of " + about + " with any arguments" + where
	}
	return "one call of " + about + where
}

// Examples returns calls that a grant covers, or none for an old grant.
func (g *Grant) Examples() []string {
	var out []string
	if g.Call != "" {
		out = append(out, g.Call)
	}
	switch g.Covers {
	case CoverPrefix:
		out = append(out, CommandLine(g.Prefix)+" ANY ARGUMENTS")
	case CoverTool:
		out = append(out, strings.TrimSpace(string(g.Capability)+" "+g.Action)+" {any arguments}")
	}
	return out
}
