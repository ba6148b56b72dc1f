package outcome

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/untrusted"
)

// A Level says how much [Text] tells of a selection.
type Level string

const (
	LevelNone     Level = "none"
	LevelSummary  Level = "summary" // also the empty level and unknown ones
	LevelDetailed Level = "detailed"
)

// Text renders a selection for people, in whole lines:
//
//	[capability-injection] Injected 2 capabilities (850 tokens):
//	  token-economy (relevance: 0.85, tokens: 600)
//	  telegram-optimizations (relevance: 0.62, tokens: 250)
//
// Each capability has one line, its briefs and bodies counted together; the map
// is not counted. What was chosen but kept out of the prompt begins with "Would
// inject". What a budget kept out is told with the budget. A summary of nothing is
// empty. The detailed form adds the tier, the seed's score of cards, what else was
// skipped and why, what was in the prompt already, and the cost. Ids and reasons
// are rendered harmless. Other events give nothing.
func Text(e Event, level Level) string {
	if level == LevelNone || e.Kind != Selected {
		return ""
	}
	detailed := level == LevelDetailed
	var b strings.Builder
	sent, held := merge(e)
	if len(sent) > 0 || detailed && len(held) == 0 {
		writeItems(&b, "Injected", sent, detailed)
	}
	if len(held) > 0 {
		writeItems(&b, "Would inject", held, detailed)
	}
	if e.Error != "" {
		fmt.Fprintf(&b, "[capability-injection] Error: %s\n", words(e.Error))
	}
	for _, s := range e.Skipped {
		if detailed || s.Tokens > 0 {
			fmt.Fprintf(&b, "  skipped %s%s: %s\n", idText(s.ID), scores(s, detailed), words(s.Reason))
		}
	}
	if !detailed {
		return b.String()
	}
	for _, id := range there(e) {
		fmt.Fprintf(&b, "  not sent again %s: it is in the prompt already\n", idText(id))
	}
	fmt.Fprintf(&b, "  %d tokens with the map (%d), %d µs, mode %s\n", e.Tokens.Total, e.Tokens.Map, e.TookUS, e.Mode.orMonitor())
	for _, d := range e.Degraded {
		fmt.Fprintf(&b, "  degraded: %s\n", words(d))
	}
	if e.Cut > 0 {
		fmt.Fprintf(&b, "  and %d more that the log line could not hold\n", e.Cut)
	}
	return b.String()
}

// scores returns how well a skipped capability matched, as far as that is
// known.
func scores(s Skip, detailed bool) string {
	var parts []string
	if s.Score > 0 {
		parts = append(parts, fmt.Sprintf("relevance: %.2f", s.Score))
	}
	if detailed && s.Seed > 0 {
		parts = append(parts, fmt.Sprintf("seed: %.2f", s.Seed))
	}
	if s.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("tokens: %d", s.Tokens))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// there returns the capabilities that did not have to be sent, in order.
func there(e Event) (out []capability.ID) {
	for _, it := range e.Items {
		if it.There && !slices.Contains(out, it.ID) {
			out = append(out, it.ID)
		}
	}
	return out
}

// A line is a capability of a selection, all its tiers together.
type textLine struct {
	Item
	tiers []string
}

// merge returns one line for each capability, in the order of the selection:
// those in the prompt, and those kept out of it.
func merge(e Event) (sent, held []textLine) {
	at := map[capability.ID]int{}
	for _, it := range e.Items {
		if it.Tier == TierMap || it.There {
			continue
		}
		list, sign := &sent, 1
		if it.Held || !e.Injected {
			list, sign = &held, -1
		}
		i, known := at[it.ID]
		if !known || i*sign < 0 {
			*list = append(*list, textLine{Item: it, tiers: []string{string(it.Tier)}})
			at[it.ID] = sign * len(*list)
			continue
		}
		l := &(*list)[i*sign-1]
		l.Tokens += it.Tokens
		l.Score, l.Seed = max(l.Score, it.Score), max(l.Seed, it.Seed)
		l.tiers = append(l.tiers, string(it.Tier))
	}
	return sent, held
}

func writeItems(b *strings.Builder, verb string, list []textLine, detailed bool) {
	total := 0
	for _, l := range list {
		total += l.Tokens
	}
	noun, end := "capabilities", ":"
	if len(list) == 1 {
		noun = "capability"
	}
	if len(list) == 0 {
		end = ""
	}
	fmt.Fprintf(b, "[capability-injection] %s %d %s (%d tokens)%s\n", verb, len(list), noun, total, end)
	for _, l := range list {
		if detailed {
			fmt.Fprintf(b, "  %s (relevance: %.2f, seed: %.2f, tokens: %d, %s)\n", idText(l.ID), l.Score, l.Seed, l.Tokens, strings.Join(l.tiers, "+"))
		} else {
			fmt.Fprintf(b, "  %s (relevance: %.2f, tokens: %d)\n", idText(l.ID), l.Score, l.Tokens)
		}
	}
}

// idText keeps an id on its line: it may come from anywhere.
func idText(id capability.ID) string { return untrusted.Line(string(id), 128) }
