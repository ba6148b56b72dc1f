package approval

import (
	"fmt"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/govern/policy"
)

// A Line is one fact of a ticket. Text came from outside: only package
// untrusted makes it fit for a terminal or a page.
type Line struct {
	Name string `json:"name"`
	Text string `json:"text"`

	// Marks are parts of Text to look at, in order. None overlaps another.
	Marks []Mark `json:"marks,omitempty"`
}

// A Mark is a range of bytes of a text that a person should look at, and why.
type Mark struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Why  string `json:"why"`
}

// Risky is the name of the line that has the marked parts in words.
const Risky = "risky"

// shown appends what a call would do, and what of it to look at.
func shown(lines []Line, list []Line) []Line {
	for _, l := range list {
		lines = append(lines, l)
		var risky []string
		for _, m := range l.Marks {
			if 0 <= m.From && m.From < m.To && m.To <= len(l.Text) {
				risky = append(risky, l.Text[m.From:m.To]+": "+m.Why)
			}
		}
		if len(risky) > 0 {
			lines = append(lines, Line{Name: Risky, Text: strings.Join(risky, "\n")})
		}
	}
	return lines
}

// Lines give all that a person needs to decide, in the order in which it is to
// be shown: first exactly what will run. Nothing is shortened.
func (t Ticket) Lines() []Line {
	var lines []Line
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, Line{Name: name, Text: text})
		}
	}
	q, c := &t.Question, &t.Question.Call
	if lines = shown(lines, q.Shown); len(lines) == 0 {
		add("command", q.Command)
		if len(q.Argv) > 0 {
			add("argv", CommandLine(q.Argv))
		}
	}
	add("arguments", readable(c.Arguments))
	for _, f := range q.Files {
		add("runs", fmt.Sprintf("%s (SHA-256 %.12s…)", f.Path, f.SHA256))
	}
	if q.Unknown != "" {
		add("also runs", "files whose content the approval does not cover, because Ken cannot determine them: "+q.Unknown)
	}
	add("capability", string(c.Target))
	add("action", c.Action)
	add("folder", q.Folder)
	if t.Before != nil {
		add("again", t.Before.Reason())
		for _, one := range t.Before.Differences {
			add("difference", fmt.Sprintf("%s: %s → %s", one.Place, orNone(one.Old), orNone(one.New)))
		}
	}
	for _, v := range t.Voided {
		add("void", v.Why)
	}
	add("risk", riskText(q.Risk))
	add("why", q.Why)
	add("rule", q.Rule)
	add("justification", q.Justification)
	add("principal", c.Principal.ID)
	add("tenant", c.Principal.Tenant)
	add("session", c.Session)
	add("surface", string(q.Surface))
	add("origin", origin(c.Origin))
	add("intent", c.Intent)
	add("mode", c.Mode)
	add("answers", answers(q))
	for _, o := range t.Offers {
		if o.Scope == Always {
			add("covers", strings.TrimSuffix(fmt.Sprintf("%s: %s; for example: %s", o.Covers, o.Text, strings.Join(o.Examples, " · ")), "; for example: "))
		}
	}
	add("asked", stamp(t.Asked))
	add("expires", stamp(t.Expires))
	add("state", string(t.State))
	if a := t.Answer; a != nil {
		add("answer", fmt.Sprintf("%s (%s) by %s at %s", a.Effect, a.Scope, a.By.ID, stamp(a.At)))
		add("note", a.Note)
		add("with", a.With)
	}
	if e := t.Ended; e != nil {
		add("ended", strings.TrimSpace(e.How+" at "+stamp(e.At)+" "+e.Why))
	}
	add("hash", c.CapabilityHash)
	add("digest", t.Digest)
	add("ticket", t.ID)
	return lines
}

// riskText returns a risk as a word, with the score and what it comes from.
func riskText(r policy.Risk) string {
	word := "low"
	switch {
	case r.Score >= 70:
		word = "high"
	case r.Score >= 40:
		word = "medium"
	}
	var parts []string
	for _, p := range []struct {
		name  string
		value uint8
	}{{"effect", r.Effect}, {"trust", r.Trust}, {"reach", r.Reach}, {"destructive", r.Destructive}} {
		if p.value > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.name, p.value))
		}
	}
	text := fmt.Sprintf("%s, %d of 100", word, r.Score)
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

func origin(c capability.Caller) string {
	if c == capability.ByModel {
		return "model"
	}
	return string(c)
}

// answers names the answers that count.
func answers(q *Question) string {
	words := []string{"deny", "grant once"}
	if q.Call.Session != "" {
		words = append(words, "deny for the session")
	}
	out := strings.Join(words, ", ")
	if q.Widest != Session {
		return out
	}
	wide := []string{"grant until a time", "grant always"}
	if q.Call.Session != "" {
		wide = append([]string{"grant for the session"}, wide...)
	}
	covers := "the exact call or the tool"
	if len(q.Prefix) > 0 {
		covers = "the exact call, a prefix or the tool"
	}
	return out + "; for " + covers + ": " + strings.Join(wide, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// CommandLine writes arguments so that one can see where each begins and ends,
// and every character that does not show: as they are where that is plain, in
// single quotes as a shell reads them, or in double quotes with escapes as in
// Go where something in them cannot be printed. Different arguments give
// different lines.
func CommandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = quoteArgument(arg)
	}
	return strings.Join(words, " ")
}

func quoteArgument(s string) string {
	plain, printable := s != "", true
	for _, r := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-", r) {
			plain = false
		}
		if !strconv.IsPrint(r) || r == '\uFFFD' {
			printable = false
		}
	}
	switch {
	case plain:
		return s
	case printable:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return strconv.Quote(s)
}

// briefLength is how many characters a line about a request has at most.
const briefLength = 80

// Brief returns what would run as one short line, for lists. It leaves things out;
// a person who decides is shown Lines.
func (t Ticket) Brief() string {
	q := &t.Question
	what := q.Command
	if what == "" && len(q.Argv) > 0 {
		what = CommandLine(q.Argv)
	}
	if what == "" {
		what = string(q.Call.Arguments)
	}
	text := string(q.Call.Target) + " " + strings.Join(strings.Fields(what), " ")
	if r := []rune(text); len(r) > briefLength {
		text = string(r[:briefLength-1]) + "…"
	}
	return strings.TrimSpace(text)
}

// ConsentLines returns the lines that a person needs in order to decide: what
// will run, why they are asked, and what differs from what they agreed to before.
// The other lines, which ken approve shows, are for the record.
func (t Ticket) ConsentLines() []Line {
	var out []Line
	all := t.Lines()
	for _, name := range []string{"capability", "action", "command", "argv", "database", "statement", "parameters", "tables", "request", "headers", "body", Risky, "arguments", "folder", "runs", "also runs", "again", "difference", "void", "why", "justification", "risk"} {
		for _, l := range all {
			if l.Name == name {
				out = append(out, l)
			}
		}
	}
	return out
}
