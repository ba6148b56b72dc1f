package chat

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/duration"
	"ken/internal/talk/consent"
	"ken/internal/talk/event"
)

// find returns the running call with an id, or nil.
func (v *view) find(id string) *call {
	for _, c := range v.calls {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// output keeps what a call writes; of a person's own command it is printed line
// by line.
func (v *view) output(o event.Output) []string {
	c := v.find(o.ID)
	if c == nil {
		return nil
	}
	text := o.Text
	if room := mostKept - len(c.output); len(text) > room {
		c.lost += len(text) - room
		text = strings.ToValidUTF8(text[:room], "")
	}
	c.output = append(c.output, text...)
	if !v.command {
		return nil
	}
	var out []string
	lines := strings.Split(c.line+o.Text, "\n")
	c.line = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		out = v.plain(out, line)
	}
	if len(c.line) > mostBlock {
		out = v.plain(out, c.line)
		c.line = ""
	}
	return out
}

// plain appends output as it is.
func (v *view) plain(out []string, text string) []string {
	for line := range strings.SplitSeq(safe(strings.TrimSuffix(text, "\r")), "\n") {
		out = append(out, line)
	}
	v.streamed = true
	return out
}

// finished takes a call off the list and says how it went.
func (v *view) finished(out []string, f event.Finished) []string {
	c := v.find(f.ID)
	if c == nil { // refused before it began
		c = &call{Call: event.Call{ID: f.ID, Target: f.Target}}
	}
	for i, other := range v.calls {
		if other == c {
			v.calls = append(v.calls[:i:i], v.calls[i+1:]...)
		}
	}
	v.called = true
	if v.command {
		return v.commandFinished(out, c, f)
	}
	if v.intended && f.Target == intentTool && f.Error == "" && !f.Result.Failed {
		v.intended = false // it was told as what it is
		return out
	}
	mark, style := "✓", green
	if f.Error != "" || f.Result.Failed {
		mark, style = "✗", red
	}
	end := duration.Text(f.Took)
	line := callLine(c.Call)
	if f.Error != "" {
		end = f.Kind
		if end == "" {
			end = "not made"
		}
	}
	end = safeLine(end)
	out = v.callLine(out, styled(v.colour, style, mark), line, end)
	if f.Error != "" {
		return v.indented(out, f.Error)
	}
	if v.brief {
		return out
	}
	text := string(c.output)
	if text == "" {
		text = resultText(f.Result)
	}
	return v.folded(out, line, text, c.lost, f.Result.Handle)
}

// intentTool is the tool by which a model declares an intent.
const intentTool capability.ID = capability.ToolIntent

// callLine appends a call's line: its mark, the call cut to the room there is,
// and its end.
func (v *view) callLine(out []string, mark, line, end string) []string {
	if v.gap {
		out = append(out, "")
	}
	v.gap, v.answered = false, false
	return append(out, clip("  "+mark+" "+clip(line, v.width-6-columns(end))+"  "+styled(v.colour, dim, end), v.width))
}

// folded appends the last lines of an output. The whole can be unfolded.
func (v *view) folded(out []string, title, text string, lost int, handle string) []string {
	lines := strings.Split(strings.TrimRight(safe(text), "\n "), "\n")
	if lines[0] == "" && len(lines) == 1 {
		return out
	}
	hidden := max(len(lines)-foldAt, 0)
	cut := hidden > 0 || lost > 0
	for _, line := range lines[hidden:] {
		shown := clip(line, v.width-4)
		cut = cut || shown != line
		out = append(out, styled(v.colour, dim, "    "+shown))
	}
	if !cut {
		return out
	}
	if lost > 0 {
		text += fmt.Sprintf("\n(%d bytes more were not kept here", lost)
		if handle != "" {
			text += "; the whole is " + handle
		}
		text += ")"
	}
	v.fold(title, text)
	note := "… Ctrl-O shows it whole"
	if hidden > 0 {
		note = fmt.Sprintf("… %s above; Ctrl-O shows all", plural(hidden, "line"))
	}
	return append(out, styled(v.colour, dim, clip("    "+note, v.width)))
}

// fold keeps a text to be unfolded. Only so many are kept; the session has all.
func (v *view) fold(title, text string) {
	v.folds = append(v.folds, fold{title, text})
	if len(v.folds) > mostFolds {
		v.folds = append([]fold(nil), v.folds[1:]...)
	}
}

// indented appends text of several lines under a call.
func (v *view) indented(out []string, text string) []string {
	for line := range strings.SplitSeq(strings.TrimRight(safe(text), "\n"), "\n") {
		for _, part := range wrap(line, v.width-4) {
			out = append(out, "    "+part)
		}
	}
	return out
}

// commandFinished ends a person's own command: all its output, and a line only
// where it did not work.
func (v *view) commandFinished(out []string, c *call, f event.Finished) []string {
	switch {
	case c.line != "":
		out = v.plain(out, c.line)
	case len(c.output) == 0 && f.Error == "":
		if text := strings.TrimRight(resultText(f.Result), "\n"); text != "" {
			out = v.plain(out, text)
		}
	}
	switch {
	case f.Error != "":
		out = v.aside(out, red, safeLine("✗ "+f.Error))
	case f.Result.Failed:
		out = v.aside(out, red, safeLine("✗ "+callLine(c.Call)+" did not work, after "+duration.Text(f.Took)))
	}
	return out
}

// resultText returns what a result says in words, and names what cannot be shown.
// Data beside words is what a model needs.
func resultText(r capability.Result) string {
	var parts []string
	words := slices.ContainsFunc(r.Parts, func(p capability.Part) bool { return p.Text != "" })
	for _, p := range r.Parts {
		switch {
		case p.Text != "":
			parts = append(parts, strings.TrimRight(p.Text, "\n"))
		case len(p.JSON) > 0 && words:
		case len(p.JSON) > 0:
			parts = append(parts, string(p.JSON))
		case len(p.Data) > 0:
			parts = append(parts, fmt.Sprintf("(%d bytes of %s)", len(p.Data), p.MIME))
		case p.Link != "":
			parts = append(parts, p.Link)
		}
	}
	return strings.Join(parts, "\n")
}

// asked appends what a person must know before they answer.
func (v *view) asked(out []string, a event.Asked) []string {
	if v.gap || v.answered {
		out = append(out, "")
	}
	v.gap, v.answered = false, false
	lines := append(slices.Clone(a.Lines), messages(a)...)
	said := slices.ContainsFunc(lines, func(l event.Line) bool { return strings.TrimSpace(l.Text) == strings.TrimSpace(a.Text) })
	if a.Text != "" && !said {
		for line := range strings.SplitSeq(safe(a.Text), "\n") {
			for _, part := range wrap(line, v.width-2) {
				out = append(out, styled(v.colour, yellow, "  "+part))
			}
		}
	}
	if len(lines) == 0 && a.Call != nil {
		lines = []event.Line{{Name: "call", Text: callLine(*a.Call)}}
	}
	for _, line := range lines {
		out = v.named(out, line)
	}
	for i, choice := range a.Choice {
		out = v.hanging(out, "", fmt.Sprintf("%d. %s", i+1, safeLine(choice)))
	}
	return out
}

// named appends a line with its name before it. Nothing is cut: it is what
// consent is given to.
func (v *view) named(out []string, line event.Line) []string {
	name := fmt.Sprintf("%12s", safeLine(line.Name))
	room := v.width - columns(name) - 2
	if room < 20 { // too narrow for two columns
		out = append(out, styled(v.colour, bold, strings.TrimLeft(name, " ")))
		return v.indented(out, line.Text)
	}
	if len(line.Marks) > 0 {
		for _, pieces := range marked(line) {
			for _, row := range wrapPieces(pieces, room) {
				out = append(out, styled(v.colour, bold, name)+"  "+paint(row, v.colour))
				name = strings.Repeat(" ", columns(name))
			}
		}
		return out
	}
	for part := range strings.SplitSeq(strings.TrimRight(safe(line.Text), "\n"), "\n") {
		style := changeStyle(line.Name, part)
		for _, row := range wrap(part, room) {
			out = append(out, styled(v.colour, bold, name)+"  "+styled(v.colour, style, row))
			name = strings.Repeat(" ", columns(name))
		}
	}
	return out
}

// marked returns the lines of a text in pieces, with the parts to look at styled.
func marked(line event.Line) [][]piece {
	var ranges [][2]int
	for _, m := range line.Marks {
		ranges = append(ranges, [2]int{m.From, m.To})
	}
	rows := [][]piece{nil}
	for i, text := range output.Cut(line.Text, ranges) {
		style := ""
		if i%2 == 1 {
			style = red
		}
		for j, part := range strings.Split(safe(text), "\n") {
			if j > 0 {
				rows = append(rows, nil)
			}
			rows[len(rows)-1] = append(rows[len(rows)-1], piece{text: part, style: style})
		}
	}
	return rows
}

// changeStyle is the colour of a line of a change: added and removed lines differ.
func changeStyle(name, line string) string {
	switch {
	case name != consent.ChangeLine:
		return ""
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return ""
}

// done ends a turn.
func (v *view) done(out []string, d event.Done) []string {
	// What a call of a person's own gave was shown with the call: the text is how
	// the model is told of it.
	if !v.streamed && d.Text != "" && !(d.Reason == event.EndCommand && v.called) {
		md := markdown{width: v.width, colour: v.colour}
		out = v.answer(out, append(md.write(d.Text), md.end()...))
	}
	if d.Reason != event.EndAnswer && d.Reason != event.EndCommand && d.Reason != "" {
		line, style := string(d.Reason), yellow
		if d.Reason == event.EndFailed {
			style = red
		}
		if d.Why != "" {
			line += ": " + d.Why
		}
		if line = safeLine(line); line != v.noticed {
			out = v.aside(out, style, line)
		}
	}
	if d.Steps > 0 {
		line := bill(d.Usage, d.Cost)
		if d.Turn > 0 {
			line = fmt.Sprintf("turn %d · %s", d.Turn, line)
		}
		out = v.aside(out, dim, line+", "+duration.Text(v.now().Sub(v.began)))
	}
	return out
}

// live returns what is not final yet, in at most rows lines: the end of the
// answer, and the calls that run with the last line each wrote.
func (v *view) live(rows int, now time.Time) []string {
	var out []string
	if preview := v.md.preview(); len(preview) > 0 {
		if !v.answered {
			out = append(out, "")
		}
		for _, line := range preview {
			out = append(out, strings.ReplaceAll(line, "\t", "    "))
		}
	}
	frames := []rune(spinner)
	turning := string(frames[int(now.UnixMilli()/spin.Milliseconds())%len(frames)])
	if !v.thinking.IsZero() {
		out = append(out, styled(v.colour, dim, "  "+turning+" thinking: "+tail(safeLine(lastPart(v.thought)), v.width-15)))
	}
	for _, c := range v.calls {
		out = v.running(out, c, turning, now)
	}
	for i, line := range out {
		out[i] = clip(line, v.width)
	}
	return out[max(len(out)-rows, 0):]
}

// spinner turns while something runs, a step every spin.
const (
	spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	spin    = 120 * time.Millisecond
)

func (v *view) running(out []string, c *call, turning string, now time.Time) []string {
	end := ""
	if d := now.Sub(c.began); d >= time.Second {
		end = fmt.Sprintf("%d s", int(d.Seconds()))
	}
	line := strings.TrimRight("  "+turning+" "+clip(callLine(c.Call), v.width-6-columns(end))+"  "+styled(v.colour, dim, end), " ")
	if v.command {
		if c.line != "" {
			out = append(out, safeLine(lastPart([]byte(c.line))))
		}
		return append(out, line)
	}
	out = append(out, line)
	written := strings.TrimRight(lastPart(c.output), "\n")
	if at := strings.LastIndexByte(written, '\n'); at >= 0 {
		written = written[at+1:]
	}
	if written != "" {
		out = append(out, styled(v.colour, dim, "    "+clip(safeLine(written), v.width-4)))
	}
	return out
}

// lastPart is enough of a text for a line of its end.
func lastPart(s []byte) string {
	const enough = 2000
	if len(s) > enough {
		return strings.ToValidUTF8(string(s[len(s)-enough:]), "")
	}
	return string(s)
}

// plural returns "1 call", "2 calls".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
