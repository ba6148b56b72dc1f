// Package discover picks the few capabilities that matter for a message and
// says why.
//
// [Find] works on one catalog snapshot and nothing else: no model, no network,
// no state. The same snapshot and query give the same selection.
package discover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/untrusted"
)

// Config bounds what is shown. The zero value shows nothing; see [Defaults].
type Config struct {
	TopK         int     // how many briefs
	MinRelevance float64 // 0–1: what scores less is not shown
	ForceInclude []capability.ID
	Exclude      []capability.ID
}

// Defaults are the values of the seed design.
func Defaults() Config { return Config{TopK: 5, MinRelevance: 0.3} }

// A Selection is what would be shown for one message.
type Selection struct {
	Query   string  `json:"query"`
	Map     string  `json:"map"`
	Briefs  []Brief `json:"briefs"`
	Skipped []Skip  `json:"skipped"`
	TookUS  int64   `json:"took_us"`
}

// A Brief is one capability in a line, fit for a prompt.
type Brief struct {
	ID    capability.ID   `json:"id"`
	Kind  capability.Kind `json:"kind"`
	Score float64         `json:"score"`
	Text  string          `json:"text"`
	Why   []string        `json:"why"`
}

// A Skip is a capability that matched and is not shown.
type Skip struct {
	ID     capability.ID `json:"id"`
	Reason string        `json:"reason"`
}

// candidates is how far down the ranking reasons for skipping are given.
const candidates = 20

// Find selects capabilities for a message. It never fails because of what the
// catalog holds; the error is ctx's.
func Find(ctx context.Context, s *catalog.Snapshot, message string, cfg Config) (Selection, error) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		return Selection{}, err
	}
	sel := Selection{Query: message, Map: mapText(s), Briefs: []Brief{}, Skipped: []Skip{}}
	shown := map[capability.ID]bool{}
	for _, id := range cfg.ForceInclude {
		e, ok := s.Get(id)
		switch {
		case slices.Contains(cfg.Exclude, id):
			sel.Skipped = append(sel.Skipped, Skip{id, "capabilities.exclude names it, which counts before forceInclude"})
		case !ok:
			sel.Skipped = append(sel.Skipped, Skip{id, "capabilities.forceInclude names it, but it is not in the catalog"})
		case e.State != catalog.Active:
			sel.Skipped = append(sel.Skipped, Skip{id, "capabilities.forceInclude names it, but it is " + string(e.State)})
		default:
			shown[id] = true
			sel.add(e, 1, []string{"always included by capabilities.forceInclude"})
		}
	}
	entries := s.Entries()
	keep := func(i int) bool { return entries[i].State != catalog.Quarantined && !shown[entries[i].ID] }
	for _, h := range s.Index().Search(message, candidates, keep) {
		e := entries[h.Ordinal]
		switch {
		case slices.Contains(cfg.Exclude, e.ID):
			sel.Skipped = append(sel.Skipped, Skip{e.ID, "capabilities.exclude names it"})
		case h.Score < cfg.MinRelevance:
			sel.Skipped = append(sel.Skipped, Skip{e.ID, fmt.Sprintf("relevance %.3f is below discovery.tier1MinRelevance %.3f", h.Score, cfg.MinRelevance)})
		case len(sel.Briefs) >= cfg.TopK:
			sel.Skipped = append(sel.Skipped, Skip{e.ID, fmt.Sprintf("discovery.tier1TopK %d was reached", cfg.TopK)})
		default:
			why := "matches " + strings.Join(h.Words, ", ")
			if h.Exact {
				why = "the message names it"
			}
			sel.add(e, h.Score, []string{why})
		}
	}
	sel.TookUS = time.Since(start).Microseconds()
	return sel, nil
}

func (sel *Selection) add(e *catalog.Entry, score float64, why []string) {
	sel.Briefs = append(sel.Briefs, Brief{
		ID: e.ID, Kind: e.Kind, Score: score, Text: line(len(sel.Briefs)+1, e), Why: why,
	})
}

// line renders a brief: "1. name (kind). description. Params: a, b".
func line(n int, e *catalog.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d. %s (%s). %s", n, untrusted.Line(e.Name, 64), untrusted.Line(string(e.Kind), 32), strings.TrimSuffix(untrusted.Line(e.Description, 120), "."))
	if len(e.Parameters) > 0 {
		var names []string
		for _, p := range e.Parameters[:min(3, len(e.Parameters))] {
			names = append(names, untrusted.Line(p.Name, 40))
		}
		b.WriteString(". Params: " + strings.Join(names, ", "))
	}
	if !e.Available {
		b.WriteString(" [not available: " + untrusted.Line(e.Missing[0], 100) + "]")
	}
	return b.String()
}
