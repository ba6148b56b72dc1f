// Package catalogreport prints what ken catalog lists, shows and finds wrong.
package catalogreport

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/untrusted"
)

// List prints capabilities, one in a line. On a terminal those that can be used
// come first, and a line counts them; all is how many there are without filters.
func List(p *output.Printer, l door.Listing, all int) {
	rows := make([][]string, 0, len(l.Capabilities))
	for _, e := range l.Capabilities {
		text := e.Description
		if e.State == "shadowed" && len(e.Reasons) > 0 { // the reason it is shadowed matters more
			text = e.Reasons.String()
		}
		rows = append(rows, []string{standing(e), string(e.ID), string(e.Kind), e.Category, text})
	}
	if p.Terminal { // what can be used first
		slices.SortStableFunc(rows, func(a, b []string) int { return cmp.Compare(rank(a[0]), rank(b[0])) })
	}
	p.Table([]output.Column{{Styles: standingStyles}, {Style: output.Bold}, {Style: output.Cyan}, {Style: output.Dim}, {Grow: true}}, rows)
	if !p.Terminal {
		return
	}
	s := l.Stats
	shown := output.Plural(all, "capability")
	if len(rows) != all {
		shown = fmt.Sprintf("%d of %s", len(rows), shown)
	}
	p.Linef("\n%s · %d can be used here · %d quarantined · %s (ken catalog lint)",
		shown, s.Available, s.Quarantined, output.Plural(len(l.Problems), "problem"))
}

// standing returns an entry's state in one word.
func standing(e *door.Entry) string {
	switch {
	case e.State != "active":
		return string(e.State)
	case e.Ready():
		return "ready"
	}
	return "unavailable"
}

var standingStyles = map[string]string{"ready": output.Green, "unavailable": output.Yellow, "quarantined": output.Red, "shadowed": output.Dim}

// rank orders standings for people.
func rank(standing string) int {
	return slices.Index([]string{"ready", "unavailable", "quarantined", "shadowed"}, standing)
}

// Description prints one capability with its schema and text.
func Description(p *output.Printer, d door.Description) {
	p.Linef("%s  %s", p.Style(output.Bold, output.Line(d.Title())), p.Style(output.Dim, output.Line(string(d.ID))))
	p.Linef("%s", output.Line(d.Description))
	p.Linef("")
	field := func(name string, value string) {
		if value != "" {
			p.Linef("%s %s", p.Style(output.Dim, fmt.Sprintf("%-11s", name)), output.Line(value))
		}
	}
	field("kind", string(d.Kind))
	field("category", d.Category)
	field("tags", strings.Join(d.Tags, ", "))
	field("version", d.Version)
	if d.Kind == capability.KindCard {
		field("priority", strconv.Itoa(d.Priority))
		field("shows", fmt.Sprintf("at most %d characters", d.MaxChars))
	}
	field("state", string(d.State))
	field("available", yesNo(d.Available, d.Missing.Sentences()))
	field("requires", strings.Join(d.RequiredTools, ", "))
	field("permissions", strings.Join(d.Permissions, ", "))
	if d.Run != nil {
		field("runs", strings.TrimSpace(d.Run.Runner+" "+strings.Join(d.Run.Argv, " ")))
	}
	if t := d.Triggers; t != nil {
		field("triggers", strings.Join(t.Keywords, ", "))
		field("sessions", strings.Join(t.SessionTypes, ", "))
		field("threshold", strconv.FormatFloat(t.ConfidenceThreshold, 'g', -1, 64))
	}
	for _, m := range d.Migrations {
		field("migration", fmt.Sprintf("%s to %s: %s", m.From, m.To, m.Note))
	}
	field("origin", fmt.Sprintf("%s (%s)", d.Origin, d.Origin.Format))
	field("trust", d.Trust.String())
	field("hash", d.Hash)
	for _, r := range d.Reasons {
		field("noticed", r.String())
	}
	if len(d.Detail.Schema) > 0 {
		p.Linef("\n%s", p.Style(output.Bold, "Input schema"))
		p.Linef("%s", untrusted.Terminal(indented(d.Detail.Schema)))
	}
	for _, part := range []struct{ title, text string }{{"Text", d.Detail.Body}, {"Usage", d.Detail.Usage}} {
		if part.text != "" {
			p.Linef("\n%s", p.Style(output.Bold, part.title))
			p.Linef("%s", untrusted.Terminal(part.text))
		}
	}
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func yesNo(yes bool, missing []string) string {
	if yes {
		return "yes"
	}
	return "no: " + strings.Join(missing, "; ")
}

// Problems prints what is wrong in a catalog, and counts it; errors is how many
// of them are errors.
func Problems(p *output.Printer, problems []capability.Problem, errors int) {
	for _, pr := range problems {
		mark := p.Style(output.Red, "error")
		if pr.Severity == capability.Warning {
			mark = p.Style(output.Yellow, "warning")
		}
		p.Linef("%s: %s [%s] %s", output.Line(pr.Origin.String()), mark, pr.Code, output.Line(pr.Message))
		if pr.Fix != "" {
			p.Linef("    %s", p.Style(output.Dim, output.Line(pr.Fix)))
		}
	}
	if len(problems) == 0 {
		p.Linef("%s", p.Style(output.Green, "nothing is wrong"))
		return
	}
	p.Linef("%s, %s: %s", output.Plural(errors, "error"), output.Plural(len(problems)-errors, "warning"), tally(problems))
}

// tally counts problems by their code, most first.
func tally(problems []capability.Problem) string {
	counts := map[string]int{}
	for _, pr := range problems {
		counts[pr.Code]++
	}
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, code := range codes {
		codes[i] = fmt.Sprintf("%d %s", counts[code], code)
	}
	return strings.Join(codes, ", ")
}

// Relation returns the words that lead from a capability to a related one.
func Relation(r door.Relation) string {
	switch {
	case r.Type == "DEPENDS_ON" && r.Needs:
		return "it needs"
	case r.Type == "DEPENDS_ON":
		return "it is needed by"
	case r.Type == "COMPOSED_WITH":
		return "it is used together with"
	case r.Type == "TAGGED_WITH":
		return "it shares tags with"
	}
	return "it is of one category with"
}

// Relevance says whether a model is shown a capability for a message, and why.
func Relevance(found door.Found, id capability.ID) string {
	shown := func(how string, score float64) string {
		return fmt.Sprintf("for this message a model is shown %s (match %.2f)", how, score)
	}
	for _, p := range found.Fulls {
		if p.ID == id {
			return shown("all of it", p.Score)
		}
	}
	for _, p := range found.Cards {
		if p.ID == id {
			return shown("its card", p.Score)
		}
	}
	for _, p := range found.Briefs {
		if p.ID == id {
			return shown("its brief", p.Score)
		}
	}
	best := ""
	if len(found.Ranking) > 0 && found.Ranking[0].ID != id {
		best = fmt.Sprintf("; the best match is %s (%.2f)", found.Ranking[0].ID, found.Ranking[0].Score)
	}
	for _, s := range found.Skipped {
		if s.ID == id {
			return fmt.Sprintf("for this message a model is not shown it: %s (match %.2f)%s", s.Reason, s.Score, best)
		}
	}
	for at, n := range found.Ranking {
		if n.ID == id {
			return fmt.Sprintf("for this message a model is not shown it: it is number %d of what was found (match %.2f)%s", at+1, n.Score, best)
		}
	}
	return "for this message a model is not shown it: it is not among what was found" + best + "; ken discover shows the ranking"
}
