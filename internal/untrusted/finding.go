package untrusted

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says what a finding is worth. The zero value is no severity.
type Severity uint8

const (
	Soft Severity = iota + 1 // a person should look
	Hard                     // quarantine until a person has looked
)

// String returns "soft" or "hard".
func (s Severity) String() string {
	switch s {
	case Soft:
		return "soft"
	case Hard:
		return "hard"
	}
	return "none"
}

// A Finding is one reason to distrust a text.
type Finding struct {
	Rule     string // stable, in words and dashes: "override-instructions"
	Severity Severity
	Line     int    // 1 is the first line of the text
	Excerpt  string // what was found and a little around it, rendered by [Line]
}

// String returns the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("line %d: %s (%s): %s", f.Line, f.Rule, f.Severity, f.Excerpt)
}

// Worst returns the highest severity among the findings, 0 for none.
func Worst(findings []Finding) Severity {
	worst := Severity(0)
	for _, f := range findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// result sorts the hits, leaves one for each rule and line, and counts lines.
func (s *scanner) result() []Finding {
	if len(s.found) == 0 {
		return nil
	}
	slices.SortStableFunc(s.found, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.rule, b.rule), cmp.Compare(b.severity, a.severity))
	})
	var kept []hit
	var lines []int
	line, counted := 1, 0
	index := map[string]int{} // of the latest kept by rule
	for _, h := range s.found {
		at := min(max(h.from, counted), len(s.text))
		line += strings.Count(s.text[counted:at], "\n")
		counted = at
		if i, ok := index[h.rule]; ok && lines[i] == line {
			if h.severity > kept[i].severity {
				kept[i] = h
			}
			continue
		}
		index[h.rule] = len(kept)
		kept = append(kept, h)
		lines = append(lines, line)
	}
	return s.findings(kept, lines)
}

// findings makes at most maxFindings of the hits. Where there are more, the hard
// ones go first and the last finding counts those left out.
func (s *scanner) findings(hits []hit, lines []int) []Finding {
	room := map[Severity]int{Hard: maxFindings, Soft: maxFindings}
	if len(hits) > maxFindings {
		hard := 0
		for _, h := range hits {
			if h.severity == Hard {
				hard++
			}
		}
		room[Hard] = maxFindings - 1
		room[Soft] = max(0, maxFindings-1-hard)
	}
	var out []Finding
	left, worst := 0, Severity(0)
	for i, h := range hits {
		if room[h.severity] == 0 {
			left++
			worst = max(worst, h.severity)
			continue
		}
		room[h.severity]--
		note := h.note
		if note == "" {
			note = s.around(h.from, h.to)
		}
		out = append(out, Finding{h.rule, h.severity, lines[i], Line(note, excerptMax)})
	}
	if left > 0 {
		out = append(out, Finding{"more", worst, lines[len(lines)-1], fmt.Sprintf("%d more findings", left)})
	}
	return out
}
