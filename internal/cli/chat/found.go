package chat

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
)

// selectedLine says what was found, in one line of so many columns: as many
// names as there is room for.
func selectedLine(s event.Selected, most int) string {
	f := s.Found
	if f.Indexed == 0 {
		return ""
	}
	if f.Abilities && len(f.Briefs) == 0 {
		return clip(fmt.Sprintf("this asks what there is: the model has the map of all %d", f.Indexed), most)
	}
	var names []string
	name := func(id capability.ID, score float64) {
		names = append(names, fmt.Sprintf("%s (%.2f)", short(id), score))
	}
	cards := sentCards(s)
	head, end := fmt.Sprintf("found %d of %d: ", len(f.Briefs)+len(cards), f.Indexed), ""
	if len(f.Briefs)+len(cards) == 0 {
		head = fmt.Sprintf("found nothing of %d that fits", f.Indexed)
		if len(f.Nearest) > 0 {
			head += "; nearest: "
		}
		for _, n := range f.Nearest {
			name(n.ID, n.Score)
		}
	}
	for _, p := range slices.Concat(cards, f.Briefs) {
		name(p.ID, p.Score)
	}
	switch {
	case len(f.Briefs)+len(cards) == 0:
	case len(s.Added) > 0:
		end = fmt.Sprintf("; added %s tokens", count(s.Tokens))
	case s.Delivery == model.Whole:
		end = "; the model has the whole list"
	default:
		end = "; the model has them already"
	}
	line := ""
	for n := min(len(names), 3); n >= 0; n-- {
		more := ""
		if n < len(names) {
			more = "…"
			if n > 0 {
				more = ", …"
			}
		}
		line = safeLine(head + strings.Join(names[:n], ", ") + more + end)
		if columns(line) <= most {
			return line
		}
	}
	return clip(line, most)
}

// sentCards returns the cards that the model has been sent, now or earlier.
func sentCards(s event.Selected) []door.Piece {
	if !s.Found.Rollout.Inject || !s.Found.Rollout.Cards {
		return nil
	}
	return s.Found.Cards
}

// short returns the name in an id.
func short(id capability.ID) string {
	if _, name, ok := strings.Cut(string(id), ":"); ok {
		return name
	}
	return string(id)
}

// why returns all that is known of the last selection.
func (v *view) why() []string {
	if v.last == nil {
		return []string{styled(v.colour, dim, "  nothing was looked for yet")}
	}
	out := v.hanging(nil, dim, selectedLine(*v.last, v.width-2))
	for _, line := range whyLines(*v.last) {
		out = v.hanging(out, dim, safeLine(line))
	}
	return out
}

// skippedLines are what was left out, with one line for each reason. What is in
// a brief was only not shown in full.
func skippedLines(f door.Found) []string {
	type group struct{ verb, reason string }
	var order []group
	ids := map[group][]string{}
	for _, skip := range f.Skipped {
		g := group{"left out", skip.Reason}
		if slices.ContainsFunc(f.Briefs, func(p door.Piece) bool { return p.ID == skip.ID }) {
			g.verb = "not in full:"
		}
		if ids[g] == nil {
			order = append(order, g)
		}
		if !slices.Contains(ids[g], string(skip.ID)) {
			ids[g] = append(ids[g], string(skip.ID))
		}
	}
	var lines []string
	for _, g := range order {
		lines = append(lines, fmt.Sprintf("%s %s: %s", g.verb, strings.Join(ids[g], ", "), g.reason))
	}
	return lines
}

// whyLines are all that is known of a selection. They came from outside.
func whyLines(s event.Selected) []string {
	f := s.Found
	var lines []string
	for _, p := range slices.Concat(sentCards(s), f.Briefs) {
		added := ""
		if slices.Contains(s.Added, p.ID) {
			added = ", new"
		}
		why := ""
		if len(p.Why) > 0 {
			why = ": " + strings.Join(p.Why, "; ")
		}
		lines = append(lines, fmt.Sprintf("%.2f  %s%s (%d tokens%s)", p.Score, p.ID, why, p.Tokens, added))
	}
	lines = append(lines, skippedLines(f)...)
	for _, n := range f.Nearest {
		lines = append(lines, fmt.Sprintf("%.2f  %s: too unlikely to be shown", n.Score, n.ID))
	}
	for _, d := range f.Degraded {
		lines = append(lines, "done without: "+d)
	}
	if s.Why != "" {
		lines = append(lines, string(s.Delivery)+": "+s.Why)
	}
	if f.Rollout.Reason != "" {
		lines = append(lines, "rollout: "+f.Rollout.Reason)
	}
	return lines
}
