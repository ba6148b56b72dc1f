package show

import (
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
)

// TestS130CardsFillTheirBudgetInOrder: the first has its room before those
// after it; one that does not fit is skipped with the limit, and a smaller one
// after it still comes, but with budgetPolicy stop.
func TestS130CardsFillTheirBudgetInOrder(t *testing.T) {
	card := func(name string, words int) Item {
		e := entry(capability.KindCard, name, func(e *catalog.Entry) { e.Description = strings.Repeat("f00d", words) })
		return Item{ID: e.ID, Page: MakePage(e, capability.Detail{}, nil, tokenizer.Count)}
	}
	first, large, small := card("first", 100), card("large", 400), card("small", 10)
	both := Assemble(DefaultBudget(), Input{Cards: []Item{first, small}}).Tokens.Cards
	b := DefaultBudget()
	b.Cards = both
	for _, tt := range []struct {
		stop  bool
		cards []Item
		want  string
	}{
		{false, []Item{first, large, small}, "card:first card:small"},
		{true, []Item{first, large, small}, "card:first"},
		{false, []Item{large, first, small}, "card:first card:small"},
		{false, []Item{first, small}, "card:first card:small"},
	} {
		b.Stop = tt.stop
		s := Assemble(b, Input{Cards: tt.cards})
		checkCaps(t, b, s)
		if got := shownIDs(s.Cards); got != tt.want {
			t.Errorf("stop %v: cards %s, want %s; skipped %v", tt.stop, got, tt.want, s.Skipped)
		}
		if slices.ContainsFunc(s.Skipped, func(k Skip) bool {
			return !strings.Contains(k.Reason, "capabilities.maxTokens") && !strings.Contains(k.Reason, "budgetPolicy stop")
		}) {
			t.Errorf("stop %v: skipped %v, want the limit named", tt.stop, s.Skipped)
		}
	}
	// Of two that do not fit together the one of the higher priority has the room.
	b.Stop, b.Cards = false, Assemble(DefaultBudget(), Input{Cards: []Item{first}}).Tokens.Cards
	if got := shownIDs(Assemble(b, Input{Cards: []Item{first, card("second", 100)}}).Cards); got != "card:first" {
		t.Errorf("cards %s, want card:first", got)
	}
}
