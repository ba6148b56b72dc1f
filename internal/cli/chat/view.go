package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/internal/duration"
	"ken/internal/talk/event"
	"ken/llm"
)

const (
	foldAt    = 4       // lines of a call's output that are shown of more
	mostKept  = 1 << 20 // bytes of a call's output that can be unfolded
	mostFolds = 50
)

// A view makes lines of the events of one turn after another. Lines that it
// returned are final; what changes yet is in live. It is not safe for
// concurrent use.
type view struct {
	width  int
	colour bool
	now    func() time.Time
	brief  bool // calls without what they wrote

	md       markdown
	command  bool // a person's own command: its output is not folded
	began    time.Time
	answered bool // text of the answer was shown since the last call
	thought  []byte
	thinking time.Time // since when; zero: it does not
	calls    []*call   // that run, oldest first
	last     *event.Selected
	folds    []fold // newest last
	streamed bool   // the answer came in fragments, or a command's output
	gap      bool   // an empty line is due
	called   bool   // a call of this turn has its result, and was shown
	intended bool   // an intent was told; the call that declared it is not
	noticed  string // the last notice
}

// A call is one that runs.
type call struct {
	event.Call
	began  time.Time
	output []byte
	lost   int    // bytes that were not kept
	line   string // not yet ended, of a person's command
}

// A fold is something of which only a part was shown.
type fold struct {
	title string
	text  string
}

// begin opens a turn.
func (v *view) begin(text string) {
	v.command, v.began, v.streamed, v.gap = strings.HasPrefix(text, "/"), v.now(), false, false
	v.md = markdown{width: v.width, colour: v.colour}
	v.calls, v.thought, v.thinking, v.answered = nil, nil, time.Time{}, false
	v.called, v.intended, v.noticed = false, false, ""
}

// resize takes a new width, for what comes.
func (v *view) resize(width int) {
	v.width, v.md.width = width, width
}

// said is how a message stands in the scrollback.
func (v *view) said(text string) []string {
	out := []string{""}
	for i, line := range strings.Split(safe(text), "\n") {
		mark := "  "
		if i == 0 {
			mark = "❯ "
		}
		for _, part := range wrap(line, v.width-2) {
			out = append(out, styled(v.colour, bold, mark+part))
			mark = "  "
		}
	}
	return out
}

// event handles an event and returns the lines to print.
func (v *view) event(ev event.Event) []string {
	switch ev := ev.(type) {
	case event.Delta:
		return v.delta(ev)
	case event.Output:
		return v.output(ev)
	}
	out := v.settle()
	switch ev := ev.(type) {
	case event.Selected:
		v.last, v.command = &ev, false // it went to the model
		if line := selectedLine(ev, v.width-2); line != "" {
			out = v.aside(out, dim, line)
			v.fold("what was found", strings.Join(whyLines(ev), "\n"))
		}
	case event.Started:
		v.calls = append(v.calls, &call{Call: ev.Call, began: v.now()})
	case event.Finished:
		out = v.finished(out, ev)
	case event.Asked:
		out = v.asked(out, ev)
	case event.Answered:
		out = v.aside(out, dim, answeredLine(ev))
	case event.Intended:
		out = v.aside(out, dim, intendedLine(ev))
		v.intended = true
	case event.Notice:
		v.noticed = safeLine(ev.Name + ": " + ev.Text)
		out = v.aside(out, yellow, v.noticed)
	case event.Done:
		out = v.done(out, ev)
	}
	return out
}

// settle ends the text before something else.
func (v *view) settle() []string {
	var out []string
	if !v.thinking.IsZero() {
		title := "thought for " + duration.Text(v.now().Sub(v.thinking))
		v.fold(title, string(v.thought))
		v.thinking, v.thought = time.Time{}, nil
		out = v.aside(out, dim, title)
	}
	return v.answer(out, v.md.end())
}

func (v *view) delta(d event.Delta) []string {
	var out []string
	if d.Thought != "" {
		if v.thinking.IsZero() {
			out = v.settle()
			v.thinking = v.now()
		}
		v.thought = append(v.thought, d.Thought...)
	}
	if d.Text != "" {
		if !v.thinking.IsZero() {
			out = append(out, v.settle()...)
		}
		out = v.answer(out, v.md.write(d.Text))
	}
	return out
}

// answer appends lines of the answer.
func (v *view) answer(out, lines []string) []string {
	if len(lines) == 0 {
		return out
	}
	if !v.answered {
		out = append(out, "")
	}
	v.answered, v.streamed, v.gap = true, true, true
	return append(out, lines...)
}

// aside appends a line that is about the answer rather than of it.
func (v *view) aside(out []string, style, line string) []string {
	if v.gap {
		out = append(out, "")
	}
	v.gap, v.answered = false, false
	return v.hanging(out, style, line)
}

// hanging appends a line that is broken where it must be, further in.
func (v *view) hanging(out []string, style, line string) []string {
	if columns(line) > v.width-2 {
		parts := wrap(line, v.width-4)
		for _, part := range parts[1:] {
			parts[0] += "\n    " + part
		}
		line = parts[0]
	}
	for part := range strings.SplitSeq("  "+line, "\n") {
		out = append(out, styled(v.colour, style, part))
	}
	return out
}

func intendedLine(i event.Intended) string {
	line := "intent " + i.Intent
	if len(i.Chain) > 1 {
		line = "intent " + strings.Join(i.Chain, " → ")
	}
	if i.Justification != "" {
		line += ": " + i.Justification
	}
	return safeLine(line)
}

func answeredLine(a event.Answered) string {
	line := "no"
	if a.Yes {
		line = "yes"
	}
	if a.Text != "" {
		line += ": " + a.Text
	}
	return safeLine("answered " + line)
}

// callLine is a call on one line: what is called and with what.
func callLine(c event.Call) string {
	line := short(c.Target)
	if c.Action != "" {
		line += " " + c.Action
	}
	if args := strings.TrimSpace(string(c.Arguments)); args != "" && args != "{}" && args != "null" {
		line += " " + plainArguments(c.Arguments)
	}
	return safeLine(line)
}

// plainArguments writes an object of plain values as name=value; anything else
// stays JSON.
func plainArguments(raw []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw)
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		value := string(fields[name])
		var text string
		if json.Unmarshal(fields[name], &text) == nil && text != "" && !strings.ContainsAny(text, " \t\n\"'=") {
			value = text
		}
		names[i] = name + "=" + value
	}
	return strings.Join(names, " ")
}

// count writes a number of tokens.
func count(n int) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.0fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// dollars writes what something costs.
func dollars(cost float64) string {
	if cost < 0.1 {
		return fmt.Sprintf("$%.4f", cost)
	}
	return fmt.Sprintf("$%.2f", cost)
}

// bill writes what was used.
func bill(u llm.Usage, cost float64) string {
	line := count(u.Input) + " tokens in"
	var cached []string
	if u.CachedRead > 0 {
		cached = append(cached, count(u.CachedRead)+" cached")
	}
	if u.CachedWrite > 0 {
		cached = append(cached, count(u.CachedWrite)+" written")
	}
	if len(cached) > 0 {
		line += " (" + strings.Join(cached, ", ") + ")"
	}
	line += ", " + count(u.Output) + " out"
	if cost > 0 {
		line += ", " + dollars(cost)
	}
	return line
}

// unfold returns what was folded last, whole, and next time what was before it.
func (v *view) unfold() []string {
	if len(v.folds) == 0 {
		return nil
	}
	f := v.folds[len(v.folds)-1]
	v.folds = v.folds[:len(v.folds)-1]
	out := []string{styled(v.colour, dim, clip("  ── "+f.title+" ──", v.width))}
	return append(out, strings.Split(strings.TrimRight(safe(f.text), "\n"), "\n")...)
}
