package discover

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/untrusted"
)

// An Example is something that could be asked for, to show a new user what there
// is.
type Example struct {
	ID       capability.ID   `json:"id"`
	Kind     capability.Kind `json:"kind"`
	Name     string          `json:"name"`
	Category string          `json:"category"`

	// Text says in a short sentence what to ask for: a phrase that the capability
	// is meant for, or what it says it does. It is foreign text on one line.
	Text string `json:"text"`
}

const (
	longestExample = 110 // bytes
	fewestWords    = 3   // of a sentence
)

// Examples picks at most n of some entries: such as can be used here and say
// what for in a sentence. They are of different categories as long as there are
// any; those of places that are trusted more come first, then those that change
// nothing, then those of large categories. The order of entries does not matter.
func Examples(entries iter.Seq[*catalog.Entry], n int) []Example {
	type offer struct {
		Example
		from, risk, group int // trust as a rank; side effects; how many its category has
		turn              int // which of its category it is
		priority          int
	}
	var all []offer
	members := map[string]int{}
	for e := range entries {
		switch e.Kind {
		case capability.KindTool, capability.KindSkill, capability.KindCommand:
		default:
			continue
		}
		text := wish(e)
		if e.State != catalog.Active || !e.Available || text == "" {
			continue
		}
		o := offer{Example: Example{ID: e.ID, Kind: e.Kind, Name: untrusted.Line(e.Name, 80), Category: e.Category, Text: text}, priority: e.Priority}
		if e.Trust < capability.TrustUser {
			o.from = 1
		}
		if e.SideEffects {
			o.risk = 1
		}
		members[strings.ToLower(e.Category)]++
		all = append(all, o)
	}
	order := func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.from, b.from), cmp.Compare(a.risk, b.risk), cmp.Compare(b.group, a.group),
			cmp.Compare(b.priority, a.priority), strings.Compare(string(a.ID), string(b.ID)))
	}
	for i := range all {
		all[i].group = members[strings.ToLower(all[i].Category)]
	}
	slices.SortFunc(all, order)
	clear(members)
	for i := range all { // the best of each category, then the second of each, …
		category := strings.ToLower(all[i].Category)
		all[i].turn = members[category]
		members[category]++
	}
	slices.SortFunc(all, order)
	out := []Example{}
	for _, o := range all[:max(0, min(n, len(all)))] {
		out = append(out, o.Example)
	}
	return out
}

// wish returns what a capability could be asked for in a sentence; "" where
// nothing of it reads like one.
func wish(e *catalog.Entry) string {
	if e.Triggers != nil {
		for _, phrase := range e.Triggers.Keywords {
			if text := sentence(phrase); text != "" {
				return text
			}
		}
	}
	return sentence(e.Description)
}

// sentence returns the first sentence of a text, without its stop; "" where that
// is none, or too long to be read at a glance.
func sentence(text string) string {
	line := untrusted.Line(text, 400)
	for i, r := range line {
		next, _ := utf8.DecodeRuneInString(line[i+utf8.RuneLen(r):])
		if strings.ContainsRune(".!?。！？", r) && (next == ' ' || next == utf8.RuneError || r >= utf8.RuneSelf) {
			line = line[:i]
			break
		}
	}
	first, _ := utf8.DecodeRuneInString(line)
	switch {
	case !unicode.IsLetter(first) || len(line) > longestExample || strings.ContainsAny(line, "⟨⟩<>{}`|"):
		return ""
	case len(strings.Fields(line)) < fewestWords && first < 0x2E80: // from there on are scripts without blanks
		return ""
	}
	return line
}
