package show

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
)

func TestSmallBudgets(t *testing.T) {
	in := Input{
		Map: MakeMap(slices.Values(seedEntries()), "Ask first.", tokenizer.Count), Briefs: seedItems(),
		Cards: seedItems()[:1], Fulls: []Item{{ID: "tool:web-search", Page: seedPage()}},
	}
	all := DefaultBudget()
	tests := []struct {
		name   string
		budget Budget
		want   string // all of the text, or the start of it before …
		skips  int
	}{
		{"zero", Budget{}, "", 8},
		{"negative", Budget{Map: -1, Briefs: -1, Fulls: -1, Cards: -1, Total: -1}, "", 8},
		{"no total", Budget{Map: 200, Briefs: 800, Fulls: 2000, Cards: 1500}, "", 8},
		{"ten", Budget{Map: 10, Briefs: 10, Fulls: 10, Cards: 10, Total: 10}, "Ask first.", 7},
		{"no briefs", Budget{Map: 200, Total: 3000}, "Ask first.\n\nAvailable capability categories:…", 7},
		{"no map", Budget{Briefs: 60, Total: 3000}, "Relevant capabilities:\n1. web-search (tool)…", 5},
		{"only the total is small", Budget{Map: 200, Briefs: 800, Fulls: 2000, Cards: 1500, Total: 100}, "Ask first.\n\nAvailable capability categories:…", 6},
		{"all", all, "Ask first.\n\nAvailable…", 0},
	}
	if s := Assemble(all, Input{}); s.Text() != "" || s.Tokens != (Tokens{}) || s.MapDetail != "nothing" || s.CardsText() != "" {
		t.Errorf("nothing at all gives %+v", s)
	}
	for _, tt := range tests {
		s := Assemble(tt.budget, in)
		checkCaps(t, tt.budget, s)
		want, more := strings.CutSuffix(tt.want, "…")
		if got := s.Text(); got != want && !(more && strings.HasPrefix(got, want)) || len(s.Skipped) != tt.skips {
			t.Errorf("%s: %d skipped, text\n%s\nwant %d and\n%s", tt.name, len(s.Skipped), got, tt.skips, tt.want)
		}
		for _, k := range s.Skipped {
			if !strings.Contains(k.Reason, "TokenBudget") && !strings.Contains(k.Reason, "capabilities.maxTokens") || k.Wanted <= k.Had {
				t.Errorf("%s: skip %+v does not name the limit", tt.name, k)
			}
		}
	}
}

func TestTotalTrimsFullsBeforeCardsBeforeBriefsBeforeMap(t *testing.T) {
	card := entry(capability.KindCard, "c", func(e *catalog.Entry) { e.Description = strings.Repeat("word ", 100) + "end." })
	in := Input{
		Map: MakeMap(slices.Values(seedEntries()), "", tokenizer.Count), Briefs: seedItems(),
		Cards: []Item{{ID: card.ID, Page: MakePage(card, capability.Detail{}, nil, tokenizer.Count)}},
		Fulls: []Item{{ID: "tool:web-search", Page: seedPage()}},
	}
	b := DefaultBudget()
	full := Assemble(b, in).Tokens
	state := func(n, full int) byte {
		switch {
		case n == full:
			return 'F'
		case n > 0:
			return 's'
		}
		return '-'
	}
	last := ""
	for b.Total = full.Total; b.Total >= 0; b.Total-- {
		s := Assemble(b, in)
		checkCaps(t, b, s)
		got := string([]byte{state(s.Tokens.Map, full.Map), state(s.Tokens.Briefs, full.Briefs), state(s.Tokens.Cards, full.Cards), state(s.Tokens.Fulls, full.Fulls)})
		// Whatever is whole has only whole tiers before it, except that a
		// smaller thing may still fit where a larger one did not.
		if got[0] != 'F' && got[1] == 'F' || got[1] == '-' && got[2] == 'F' {
			t.Errorf("total %d: map, briefs, cards, fulls are %s", b.Total, got)
		}
		if got != last && last == "" && got != "FFFF" {
			t.Errorf("with all the room it is %s", got)
		}
		last = got
	}
	if last != "----" {
		t.Errorf("without a total it is %s", last)
	}
}

func TestSkipAndContinueOrStop(t *testing.T) {
	items := seedItems()
	long := MakeBrief(entry("tool", "long", func(e *catalog.Entry) { e.Description = strings.Repeat("漢字", 55) }), tokenizer.Count)
	items = slices.Insert(items, 1, Item{ID: "tool:long", Brief: long})
	b := Budget{Briefs: 80, Total: 3000}
	s := Assemble(b, Input{Briefs: items})
	if got := shownIDs(s.Briefs); got != "tool:web-search tool:news-search tool:web-browser skill:summarizer" || s.Skipped[0].ID != "tool:long" {
		t.Errorf("skip and continue: shown %s, skipped %v", got, s.Skipped)
	}
	if k := s.Skipped[0]; k.Reason != fmt.Sprintf("discovery.tier1TokenBudget 80 has %d left, it needs %d", k.Had, k.Wanted) || k.Wanted != long.Tokens {
		t.Errorf("skip = %+v", k)
	}
	b.Stop = true
	s = Assemble(b, Input{Briefs: items})
	if got := shownIDs(s.Briefs); got != "tool:web-search" || len(s.Skipped) != 5 || !strings.Contains(s.Skipped[1].Reason, "budgetPolicy stop") {
		t.Errorf("stop: shown %s, skipped %v", got, s.Skipped)
	}
	first, small := longSkill("first", 9000), seedPage()
	b = Budget{Fulls: 600, Total: 3000, Stop: true}
	s = Assemble(b, Input{Fulls: []Item{{ID: first.ID, Page: first}, {ID: small.ID, Page: small}}})
	if len(s.Fulls) != 0 || len(s.Skipped) != 2 || !s.Truncated {
		t.Errorf("stop: full texts %v, skipped %v", s.Fulls, s.Skipped)
	}
}

func shownIDs(list []Piece) string {
	var ids []string
	for _, p := range list {
		ids = append(ids, string(p.ID))
	}
	return strings.Join(ids, " ")
}

func TestACardIsNotShownInFullAgain(t *testing.T) {
	p := seedPage()
	items := []Item{{ID: p.ID, Page: p}, {ID: "tool:none"}}
	s := Assemble(DefaultBudget(), Input{Cards: items[:1], Fulls: items})
	if len(s.Cards) != 1 || len(s.Fulls) != 0 || strings.Count(s.Text(), "# Web Search") != 1 {
		t.Errorf("Text() =\n%s", s.Text())
	}
	if len(s.Skipped) != 1 || s.Skipped[0].ID != "tool:none" {
		t.Errorf("skipped = %v, want only the one without a text", s.Skipped)
	}
}

func TestBudgetForLongConversations(t *testing.T) {
	b := DefaultBudget()
	b.Ceiling = 5000
	tests := []struct {
		tokens                      int
		briefs, cards, fulls, total int
	}{
		{-1, 800, 1500, 2000, 3000}, {0, 800, 1500, 2000, 3000}, {8000, 800, 1500, 2000, 3000},
		{36000, 1200, 2250, 3000, 4500}, {64000, 1600, 3000, 4000, 5000}, {1 << 50, 1600, 3000, 4000, 5000},
	}
	for _, tt := range tests {
		got := b.For(tt.tokens)
		if got.Briefs != tt.briefs || got.Cards != tt.cards || got.Fulls != tt.fulls || got.Total != tt.total || got.Map != b.Map {
			t.Errorf("For(%d) = %+v, want %+v", tt.tokens, got, tt)
		}
	}
	if got := DefaultBudget().For(1 << 20); got.Total != 3000 || got.Fulls != 3000 {
		t.Errorf("without a ceiling For = %+v, want the same total", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-10, 1<<62)
		b := Budget{Map: n.Draw(t, "map"), Briefs: n.Draw(t, "briefs"), Cards: n.Draw(t, "cards"), Fulls: n.Draw(t, "fulls"), Total: n.Draw(t, "total"), Ceiling: n.Draw(t, "ceiling")}
		x, y := rapid.IntRange(0, 100000).Draw(t, "x"), rapid.IntRange(0, 100000).Draw(t, "y")
		p, q := b.For(min(x, y)), b.For(max(x, y))
		if p.Briefs > q.Briefs || p.Cards > q.Cards || p.Fulls > q.Fulls || p.Total > q.Total || p.Total < b.Total || p.Fulls < b.Fulls || q.Total > max(b.Total, b.Ceiling) {
			t.Errorf("For(%d) = %+v, For(%d) = %+v", min(x, y), p, max(x, y), q)
		}
	})
}

func TestT04SameBytesWhateverTheOrderOfEntries(t *testing.T) {
	list, page := append(seedEntries(), inCategories(40)...), longSkill("long", 1500)
	r := rand.New(rand.NewPCG(3, 4))
	want := map[int]string{}
	for range 50 {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		m := MakeMap(slices.Values(list), "Rules.", tokenizer.Count)
		for _, room := range []int{20, 100, 200, 400, 4000} {
			s := Assemble(Budget{Map: room, Briefs: 100, Fulls: 500, Cards: 250, Total: 1000}, Input{
				Map: m, Briefs: seedItems(), Cards: []Item{{ID: page.ID, Page: page}}, Fulls: []Item{{ID: "tool:web-search", Page: seedPage()}},
			})
			got := s.Text() + fmt.Sprint(s.Skipped, s.Tokens)
			if want[room] == "" {
				want[room] = got
			}
			if got != want[room] {
				t.Fatalf("with %d tokens for the map the text differs:\n%s\n---\n%s", room, got, want[room])
			}
		}
	}
}
