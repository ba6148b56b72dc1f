package discover

import (
	"testing"

	"pgregory.net/rapid"

	"ken/internal/find/show"
	"ken/internal/tokenizer"
)

// TestT03NothingIsOverBudget: whatever the catalog, the script, the message and
// the budgets, no tier and not the whole costs more than it may, by the real
// count of the text.
func TestT03NothingIsOverBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		things := randomThings(14).Draw(t, "things")
		w := of(t, things...)
		cfg := randomConfig().Draw(t, "config")
		cfg.ForceInclude = randomIDs(things, 3).Draw(t, "forceInclude")
		tokens := rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 4000))
		cfg.Budget = show.Budget{
			Map: tokens.Draw(t, "map"), Briefs: tokens.Draw(t, "briefs"), Fulls: tokens.Draw(t, "fulls"),
			Cards: tokens.Draw(t, "cards"), Total: tokens.Draw(t, "total"), Stop: rapid.Bool().Draw(t, "stop"),
			Mode: rapid.SampledFrom([]show.Mode{show.Full, show.Full, show.Compact, show.Names, show.Lazy}).Draw(t, "mode"),
		}
		sel := w.ask(t, randomQuery(things).Draw(t, "query"), cfg)
		b, got := cfg.Budget, sel.Tokens
		if got.Map > b.Map || got.Briefs > b.Briefs || got.Cards > b.Cards || got.Fulls > b.Fulls || got.Total > b.Total {
			t.Fatalf("tokens %+v, want them within %+v", got, b)
		}
		if got.Total != got.Map+got.Briefs+got.Cards+got.Fulls {
			t.Fatalf("tokens %+v do not add up", got)
		}
		if n := tokenizer.Count(sel.Text()); n > got.Total {
			t.Fatalf("the text has %d tokens, Tokens.Total is %d:\n%s", n, got.Total, sel.Text())
		}
		if n := tokenizer.Count(sel.Map); n > got.Map {
			t.Fatalf("the map has %d tokens, Tokens.Map is %d", n, got.Map)
		}
	})
}

// TestBudgetGrowsWithTheConversation: a long one has room for more, up to the
// ceiling; the map stays as it is.
func TestBudgetGrowsWithTheConversation(t *testing.T) {
	w := starter(t)
	cfg := Defaults()
	cfg.Budget.Briefs, cfg.Budget.Fulls, cfg.Budget.Total, cfg.Budget.Ceiling = 120, 300, 600, 1000
	var before Selection
	for _, conversation := range []int{0, 8_000, 36_000, 64_000, 1_000_000} {
		sel := w.ask(t, Query{Text: "check the open issues on github", Conversation: conversation}, cfg)
		if sel.Tokens.Total < before.Tokens.Total || sel.Tokens.Total > 1000 || conversation <= 8_000 && sel.Tokens.Total > 600 {
			t.Errorf("with %d tokens said: %+v after %+v, want no less than before and within 600 to 1000", conversation, sel.Tokens, before.Tokens)
		}
		if before.Map != "" && sel.Map != before.Map {
			t.Errorf("with %d tokens said the map is %q, want %q", conversation, sel.Map, before.Map)
		}
		before = sel
	}
	if short := w.ask(t, Query{Text: "check the open issues on github"}, cfg); before.Tokens.Total <= short.Tokens.Total {
		t.Errorf("a long conversation has %d tokens, a short one %d; want more", before.Tokens.Total, short.Tokens.Total)
	}
}
