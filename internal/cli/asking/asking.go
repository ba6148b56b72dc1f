// Package asking shows requests for approval on a terminal, and takes the answers.
package asking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/internal/cli/output"
	"ken/internal/govern/approval"
	"ken/internal/talk/consent"
)

// A Prompt asks a person about requests.
type Prompt struct {
	Out    *output.Printer
	Read   func(context.Context) (string, error) // a line
	Forget func()                                // drops what was typed before the question
	Later  bool                                  // the person may leave a request open
}

// ErrLater is returned by Decide if the person leaves a request open.
var ErrLater = errors.New("the request stays open")

// Show prints what a person needs to decide about a request.
func (p Prompt) Show(t approval.Ticket, lines []approval.Line) {
	p.Out.Linef("%s", p.Out.Style(output.Bold, output.Line(t.Title())))
	for _, line := range lines {
		if slices.Contains(Beside(), line.Name) {
			continue
		}
		p.Out.Linef("%s  %s", p.Out.Style(output.Bold, fmt.Sprintf("%12s", output.Line(line.Name))), strings.ReplaceAll(Text(p.Out, line), "\n", "\n"+strings.Repeat(" ", 14)))
	}
}

// Beside returns the names of the lines of a request that few people decide by.
func Beside() []string {
	return []string{"tenant", "surface", "origin", "intent", "mode", "asked", "state", "hash", "digest", "ticket"}
}

// Text returns the text of a line of a request: a change coloured by what happens
// to its lines, and others with the parts to look at coloured.
func Text(p *output.Printer, l approval.Line) string {
	if l.Name == consent.ChangeLine {
		return change(p, l.Text)
	}
	var ranges [][2]int
	for _, m := range l.Marks {
		ranges = append(ranges, [2]int{m.From, m.To})
	}
	var b strings.Builder
	for i, piece := range output.Cut(l.Text, ranges) {
		if piece = output.Text(piece); i%2 == 1 {
			piece = p.Style(output.Red, piece)
		}
		b.WriteString(piece)
	}
	return b.String()
}

func change(p *output.Printer, text string) string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(output.Text(text), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			line = p.Style(output.Green, line)
		case strings.HasPrefix(line, "-"):
			line = p.Style(output.Red, line)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// Decide asks until there is an answer that counts. None is a no, or with Later
// ErrLater.
func (p Prompt) Decide(ctx context.Context, t approval.Ticket) (approval.Answer, error) {
	choices, wider := offered(t)
	none, later := approval.Answer{Effect: approval.No, Scope: approval.Once}, error(nil)
	if p.Later {
		choices += ", [Enter] later"
		none, later = approval.Answer{}, ErrLater
	}
	p.Forget()
	for range 3 {
		fmt.Fprintf(p.Out, "%s %s: ", p.Out.Style(output.Yellow, "Allow it?"), choices)
		line, err := p.Read(ctx)
		if err != nil {
			return approval.Answer{}, err
		}
		line = strings.TrimSpace(line)
		if answer, ok := wider[line]; ok {
			return answer, nil
		}
		switch line {
		case "":
			return none, later
		case "y", "yes":
			return approval.Answer{Effect: approval.Yes, Scope: approval.Once}, nil
		case "N":
			return approval.Answer{Effect: approval.No, Scope: approval.Session}, nil
		case "n", "no":
			return approval.Answer{Effect: approval.No, Scope: approval.Once}, nil
		}
		p.Out.Linef("%q is none of them", output.Line(line))
	}
	return none, later
}

// offered returns the answers that a person may give, in words, and those for more
// than one call by their keys.
func offered(t approval.Ticket) (string, map[string]approval.Answer) {
	if t.Question.Widest != approval.Session {
		return "[y] this once, [n] no, [N] no, and do not ask again in this session", nil
	}
	choices, wider := "[y] this once", map[string]approval.Answer{}
	for _, o := range t.Offers {
		key := map[string]string{"always call": "a", "always prefix": "p", "session tool": "s"}[string(o.Scope)+" "+string(o.Covers)]
		if key == "" {
			continue
		}
		wider[key] = approval.Answer{Effect: approval.Yes, Scope: o.Scope, Covers: o.Covers}
		choices += fmt.Sprintf("\n  [%s] %s", key, output.Line(o.Text))
		if len(o.Examples) > 0 {
			choices += output.Line(" (as " + strings.Join(o.Examples, " · ") + ")")
		}
	}
	return choices + "\n  [n] no, [N] no, and do not ask again in this session", wider
}
