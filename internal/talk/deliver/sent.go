package deliver

import (
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/llm"
)

// Sent returns the part of a selection that is in the entries at the start of a
// turn. It is read from their texts and tools, so only what was sent is
// reported. before lists the tools of the prefix so far; it is nil at the start
// of a session, whose first list does not answer a message.
func Sent(found door.Found, entries []session.Entry, before []llm.Tool, count tokenizer.Counter) (out []door.Sent) {
	var text strings.Builder
	tools := map[capability.ID]int{}
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case session.Prefix:
			newTools(e, before, tools, count)
			before = e.Tools
			if e.Name == string(model.PerTurn) {
				text.WriteString(e.System + "\n")
			}
		case session.Added:
			for _, b := range e.Blocks {
				text.WriteString(b.Text + "\n")
				newTools(&session.Entry{Tools: b.Tools, Offers: e.Offers}, []llm.Tool{}, tools, count)
			}
		}
	}
	return read(found, text.String(), tools)
}

// newTools returns the tokens of an entry's tools that are not in before.
func newTools(e *session.Entry, before []llm.Tool, into map[capability.ID]int, count tokenizer.Counter) {
	if before == nil {
		return
	}
	known := map[string]bool{}
	for _, t := range before {
		known[t.Name] = true
	}
	ids := map[string]capability.ID{}
	for _, o := range e.Offers {
		ids[o.Tool] = o.ID
	}
	for _, t := range e.Tools {
		if id := ids[t.Name]; id != "" && !known[t.Name] {
			into[id] += ToolTokens(t, count)
		}
	}
}

// read finds the pieces of a selection in what was sent.
func read(found door.Found, text string, tools map[capability.ID]int) (out []door.Sent) {
	add := func(tier door.Tier, list []door.Piece, is func(door.Piece) bool) {
		for _, p := range list {
			if n := tools[p.ID]; n > 0 && tier != door.TierCard {
				out = append(out, door.Sent{ID: p.ID, Tier: tier, Tokens: n})
				delete(tools, p.ID) // counted once
			} else if p.Text != "" && is(p) {
				out = append(out, door.Sent{ID: p.ID, Tier: tier, Tokens: p.Tokens})
			}
		}
	}
	whole := func(p door.Piece) bool { return strings.Contains(text, p.Text) }
	add(door.TierFull, found.Fulls, whole)
	add(door.TierBrief, found.Briefs, func(p door.Piece) bool {
		return strings.Contains(text, p.AfterName()+"\n") || strings.Contains(text, p.Text)
	})
	add(door.TierCard, found.Cards, whole)
	return out
}
