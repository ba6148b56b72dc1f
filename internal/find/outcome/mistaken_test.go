package outcome

import (
	"slices"
	"testing"
)

// TestMistakenFor: a tool that was shown first and not called is told with the
// one that was.
func TestMistakenFor(t *testing.T) {
	selected := func(session string, items ...Item) Event {
		return Event{Kind: Selected, Session: session, Items: items}
	}
	events := []Event{
		selected("a", Item{ID: "card:x", Tier: TierCard, Score: 1}, Item{ID: "tool:one", Tier: TierBrief, Score: 0.9}, Item{ID: "tool:two", Tier: TierBrief, Score: 0.5}),
		{Kind: Used, Session: "a", ID: "tool:two"},
		{Kind: Used, Session: "b", ID: "tool:two"},
		selected("a", Item{ID: "tool:one", Tier: TierFull, Score: 0.9}),
		{Kind: Used, Session: "a", ID: "tool:two"},
		{Kind: Used, Session: "a", ID: "tool:one"},
		selected("a", Item{ID: "tool:one", Tier: TierBrief, Score: 0.9}),
		{Kind: Failed, Session: "a", ID: "tool:three"},
		{Kind: Used, Session: "a", ID: "tool:two"},
	}
	got := MistakenFor(func(yield func(Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	})
	if want := []Mistaken{{"tool:one", "tool:two", 2}}; !slices.Equal(got, want) {
		t.Errorf("MistakenFor = %v, want %v", got, want)
	}
}
