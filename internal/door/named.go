package door

import (
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/find/outcome"
)

// read says of an item that is a text which tools it names.
func (v View) read(f Found, it *outcome.Item) {
	i, ok := v.snapshot.Ordinal(it.ID)
	if !ok {
		return
	}
	e := v.snapshot.Entries()[i]
	if it.Text = isText(e.Kind); !it.Text {
		return
	}
	pieces := map[outcome.Tier][]Piece{outcome.TierBrief: f.Briefs, outcome.TierCard: f.Cards, outcome.TierFull: f.Fulls}[it.Tier]
	text := ""
	if at := slices.IndexFunc(pieces, func(p Piece) bool { return p.ID == it.ID }); at >= 0 {
		text = pieces[at].Text
	}
	it.Names = v.namedIn(text, e.RequiredTools)
}

// isText reports whether capabilities of a kind are read and not called.
func isText(k capability.Kind) bool { return k == capability.KindCard || k == capability.KindSkill }

// namedIn returns the tools that a text names, in its order: by id, or by a name
// that no ordinary word is (web_search, web-search) or that is marked as code.
// Tools by which others are found and called are not counted.
func (v View) namedIn(text string, required []string) (out []capability.ID) {
	add := func(word string) {
		if len(out) == outcome.MostNames || !v.has(word) && v.ownCalled(word) == nil {
			return
		}
		e, err := v.lookup(word)
		if err != nil || isText(e.Kind) || slices.Contains(out, e.ID) {
			return
		}
		switch e.Name {
		case capability.ToolDiscover, capability.ToolList, capability.ToolDescribe, capability.ToolInvoke, capability.ToolIntent, capability.ToolAsk, capability.ToolFinish:
			return
		}
		out = append(out, e.ID)
	}
	for _, name := range required {
		add(name)
	}
	for i, code := range strings.Split(text, "`") {
		for word := range strings.FieldsFuncSeq(code, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-:/.", r))
		}) {
			if word = strings.Trim(word, "-:/."); i%2 == 1 || strings.ContainsAny(word, "_-:/") {
				add(word)
			}
		}
	}
	return out
}
