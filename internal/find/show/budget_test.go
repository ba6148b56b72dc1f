package show

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/testkit"
	"ken/internal/testkit/findtest"
	"ken/internal/tokenizer"
)

// anyShow draws a catalog, a choice from it and a budget.
func anyShow(t *rapid.T, count tokenizer.Counter) (Budget, Input) {
	entries := rapid.SliceOfN(findtest.Entry(), 0, 12).Draw(t, "entries")
	in := Input{Map: MakeMap(slices.Values(entries), findtest.Text(30).Draw(t, "document"), count)}
	for _, e := range entries {
		in.Briefs = append(in.Briefs, Item{ID: e.ID, Brief: MakeBrief(e, count)})
		if n := rapid.IntRange(0, 3).Draw(t, "tier"); n > 0 {
			item := Item{ID: e.ID, Page: MakePage(e, findtest.Detail().Draw(t, "detail"), nil, count)}
			if n < 3 {
				in.Fulls = append(in.Fulls, item)
			}
			if n > 1 {
				in.Cards = append(in.Cards, item)
			}
		}
	}
	n := rapid.IntRange(0, 4000)
	if rapid.Bool().Draw(t, "small") {
		n = rapid.IntRange(0, 300)
	}
	return Budget{
		Map: n.Draw(t, "map"), Briefs: n.Draw(t, "briefs"), Fulls: n.Draw(t, "fulls"), Cards: n.Draw(t, "cards"), Total: n.Draw(t, "total"),
		Stop: rapid.IntRange(0, 4).Draw(t, "stop") == 0, Mode: rapid.SampledFrom([]Mode{Full, Full, Full, Compact, Names, Lazy}).Draw(t, "mode"),
	}, in
}

// Whatever the words and the budgets: no tier and no total is exceeded by the
// true count, and everything is either shown or skipped with a reason.
func TestT03NoBudgetIsEverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, in := anyShow(t, tokenizer.Count)
		s := Assemble(b, in)
		checkCaps(t, b, s)
		checkAccounted(t, in, s)
		if again := Assemble(b, in); again.Text() != s.Text() || again.Tokens != s.Tokens {
			t.Errorf("the same input gives\n%s\nand\n%s", s.Text(), again.Text())
		}
	})
}

func checkAccounted(t *rapid.T, in Input, s Shown) {
	for _, c := range []struct {
		tier  Tier
		items []Item
		shown []Piece
	}{{TierBriefs, in.Briefs, s.Briefs}, {TierCards, in.Cards, s.Cards}, {TierFulls, in.Fulls, s.Fulls}} {
		for _, it := range c.items {
			is := func(p Piece) bool { return p.ID == it.ID }
			skipped := slices.ContainsFunc(s.Skipped, func(k Skip) bool { return k.ID == it.ID && k.Tier == c.tier && k.Reason != "" })
			card := c.tier != TierBriefs && slices.ContainsFunc(s.Cards, is)
			if !slices.ContainsFunc(c.shown, is) && !skipped && !card {
				t.Errorf("%s is neither among the %s nor skipped: %v", it.ID, c.tier, s.Skipped)
			}
		}
	}
	for _, p := range s.Fulls {
		if slices.ContainsFunc(s.Cards, func(c Piece) bool { return c.ID == p.ID }) {
			t.Errorf("%s is both a card and shown in full", p.ID)
		}
	}
	for _, p := range slices.Concat(s.Cards, s.Fulls) {
		if p.Truncated != strings.HasSuffix(p.Text, " reads all]") && !strings.Contains(p.Text, "reads all]") {
			t.Errorf("truncated %v, but the text ends without a handle:\n%s", p.Truncated, p.Text)
		}
	}
}

// The other counters are estimates from above: sums of parts are never less
// than the whole for them either.
func TestBudgetsHoldForEveryCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"estimate", "chars4"}).Draw(t, "counter")
		count := testkit.Must(tokenizer.Named(name))(t)
		b, in := anyShow(t, count)
		s := Assemble(b, in)
		if n := count(s.Text()); n > s.Tokens.Total || s.Tokens.Total > b.Total {
			t.Errorf("%s: %d tokens, said to be %d, budget %d", name, n, s.Tokens.Total, b.Total)
		}
	})
}

// Sums may be more than the true count, but not by much: what is counted twice
// is lost to the reader.
func TestSumsAreTight(t *testing.T) {
	p := longSkill("long", 20000)
	if n := tokenizer.Count(p.Text()); p.Tokens() < n || p.Tokens() > n+n/100 {
		t.Errorf("Tokens() = %d, true count %d", p.Tokens(), n)
	}
	s := Assemble(DefaultBudget(), Input{Map: MakeMap(slices.Values(inCategories(12)), "", tokenizer.Count), Briefs: seedItems(), Fulls: []Item{{ID: p.ID, Page: p}}})
	if n := tokenizer.Count(s.Text()); s.Tokens.Total > n+n/50 {
		t.Errorf("Tokens.Total = %d, true count %d", s.Tokens.Total, n)
	}
}

func FuzzPage(f *testing.F) {
	f.Add("Use it.", `{"properties":{"q":{"type":"string"}}}`, "# A\n\ntext\n\n## B\n\n/x\n", 100)
	f.Add("/", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, strings.Repeat("字。", 300), 300)
	f.Add("a\n/b", `[]`, "```\n# no\n```\n#\n", 60)
	f.Fuzz(func(t *testing.T, description, schema, body string, room int) {
		e := entry(capability.KindSkill, "s", func(e *catalog.Entry) { e.Description = description })
		p := MakePage(e, capability.Detail{Schema: json.RawMessage(schema), Body: body}, nil, tokenizer.Count)
		if n := tokenizer.Count(p.Text()); n > p.Tokens() {
			t.Errorf("%d tokens, said to be %d:\n%q", n, p.Tokens(), p.Text())
		}
		piece, ok := p.excerpt(room)
		if n := tokenizer.Count(piece.Text); ok && (n > piece.Tokens || piece.Tokens > room) {
			t.Errorf("excerpt(%d): %d tokens, said to be %d:\n%q", room, n, piece.Tokens, piece.Text)
		}
	})
}
