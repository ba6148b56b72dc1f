package show

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/testkit"
	"ken/internal/tokenizer"
)

// entry makes an active, available entry with the conventional id.
func entry(kind capability.Kind, name string, change ...func(*catalog.Entry)) *catalog.Entry {
	e := &catalog.Entry{
		Capability: &capability.Capability{ID: capability.MakeID(kind, name), Kind: kind, Name: name, Category: "general"},
		State:      catalog.Active, Available: true,
	}
	for _, f := range change {
		f(e)
	}
	return e
}

func params(names ...string) (list []capability.Parameter) {
	for _, n := range names {
		list = append(list, capability.Parameter{Name: n})
	}
	return list
}

// seedBlock is what the seed shows.
func seedBlock(t *testing.T, name string) string { return blockOf(t, "testdata/seed.txtar", name) }

// pageBlock is what a page shows.
func pageBlock(t *testing.T, name string) string { return blockOf(t, "testdata/page.txtar", name) }

func blockOf(t *testing.T, file, name string) string {
	t.Helper()
	for _, f := range testkit.Must(txtar.ParseFile(file))(t).Files {
		if f.Name == name {
			return strings.TrimSuffix(string(f.Data), "\n")
		}
	}
	t.Fatalf("%s has no %s", file, name)
	return ""
}

// seedEntries are the capabilities behind the seed's map. Priority says which
// names people look for first.
func seedEntries() []*catalog.Entry {
	var list []*catalog.Entry
	add := func(category string, kind capability.Kind, priority int, names ...string) {
		for i, name := range names {
			list = append(list, entry(kind, name, func(e *catalog.Entry) {
				e.Category, e.Priority = category, max(0, priority-i)
			}))
		}
	}
	add("communication", capability.KindChannel, 4, "telegram", "discord", "slack", "whatsapp")
	for i := range 16 {
		add("communication", capability.KindChannel, 0, fmt.Sprintf("channel-%02d", i))
	}
	add("information", capability.KindTool, 4, "web-search", "news-search", "web-browser")
	add("developer-tools", capability.KindSkill, 3, "github", "git", "cli-executor")
	return list
}

// seedItems are the briefs of the seed's example.
func seedItems() []Item {
	const tool, skill = capability.KindTool, capability.KindSkill
	describe := func(s string, p ...string) func(*catalog.Entry) {
		return func(e *catalog.Entry) { e.Description, e.Parameters = s, params(p...) }
	}
	var items []Item
	for _, e := range []*catalog.Entry{
		entry(tool, "web-search", describe("Search the web for current information.", "query", "max_results")),
		entry(tool, "news-search", describe("Search news articles by keyword", "query", "date_range")),
		entry(tool, "web-browser", describe("Browse a URL and extract content", "url", "selector")),
		entry(skill, "github", describe("Use the GitHub CLI for issues, PRs, repos."), func(e *catalog.Entry) { e.RequiredBins = []string{"gh"} }),
		entry(skill, "summarizer", describe("Summarize long documents into key points.")),
	} {
		items = append(items, Item{ID: e.ID, Score: 0.5, Brief: MakeBrief(e, tokenizer.Count), Page: MakePage(e, capability.Detail{}, nil, tokenizer.Count)})
	}
	return items
}

func seedPage() *Page {
	e := entry(capability.KindTool, "web-search", func(e *catalog.Entry) {
		e.Category, e.Description = "information", "Search the web for current information using the Serper API."
		e.RequiredSecrets = []string{"SERPER_API_KEY"}
	})
	return MakePage(e, capability.Detail{Schema: json.RawMessage(`{"type":"object","required":["query"],"properties":{
		"query":{"type":"string","description":"The search query"},
		"max_results":{"type":"number","description":"Maximum results to return","default":5},
		"search_type":{"type":"string","description":"Type of search","enum":["search","news","images"],"default":"search"}}}`)}, nil, tokenizer.Count)
}

func TestT01SeedMap(t *testing.T) {
	m := MakeMap(slices.Values(seedEntries()), "", tokenizer.Count)
	want := seedBlock(t, "map")
	if got := m.Fit(200); got.Text != want || got.Detail != "4 names" {
		t.Errorf("Fit(200) = %s\n%s\nwant\n%s", got.Detail, got.Text, want)
	}
	if got := m.Fit(200).Tokens; got > 150 {
		t.Errorf("the seed's map costs %d tokens, want about 150 or fewer", got)
	}
}

func TestT01SeedBriefs(t *testing.T) {
	s := Assemble(DefaultBudget(), Input{Briefs: seedItems()})
	if want := seedBlock(t, "briefs"); s.Text() != want {
		t.Errorf("Text() =\n%s\nwant\n%s", s.Text(), want)
	}
	if s.Tokens.Briefs > 200 {
		t.Errorf("the seed's briefs cost %d tokens, want about 200 or fewer", s.Tokens.Briefs)
	}
	if b := s.Briefs[3]; b.Number != 4 || b.ID != "skill:github" || b.Text != "4. github (skill). Use the GitHub CLI for issues, PRs, repos. Requires: gh" {
		t.Errorf("the fourth brief is %+v", b)
	}
}

func TestT01SeedFull(t *testing.T) {
	p := seedPage()
	want := seedBlock(t, "full")
	if p.Text() != want {
		t.Errorf("Text() =\n%s\nwant\n%s", p.Text(), want)
	}
	s := Assemble(DefaultBudget(), Input{Fulls: []Item{{ID: p.ID, Page: p}}})
	if s.Text() != want || s.Truncated {
		t.Errorf("assembled: truncated %v\n%s\nwant\n%s", s.Truncated, s.Text(), want)
	}
}

func TestWholeTextHasItsParts(t *testing.T) {
	card := entry(capability.KindCard, "token-economy", func(e *catalog.Entry) { e.DisplayName = "Token Economy Hooks" })
	page := MakePage(card, capability.Detail{Body: "Route cheap work to cheap models."}, []byte("k"), tokenizer.Count)
	s := Assemble(DefaultBudget(), Input{
		Map:    MakeMap(slices.Values(seedEntries()), "Ask before you send.\n", tokenizer.Count),
		Briefs: seedItems(), Cards: []Item{{ID: card.ID, Page: page}}, Fulls: []Item{{ID: "tool:web-search", Page: seedPage()}},
	})
	fence := page.Text()[strings.Index(page.Text(), "[[data "):]
	want := "Ask before you send.\n\n" + seedBlock(t, "map") + "\n\n" + seedBlock(t, "briefs") + "\n\n" + seedBlock(t, "full") +
		"\n\n# Capability Context (auto-injected)\nInjected: card:token-economy\n\n## Token Economy Hooks\n\n" + fence
	if got := s.Text(); got != want {
		t.Errorf("Text() =\n%s\nwant\n%s", got, want)
	}
	if !strings.HasSuffix(want, s.CardsText()) || !strings.Contains(fence, "\nRoute cheap work to cheap models.\n[[end ") {
		t.Errorf("CardsText() = %q", s.CardsText())
	}
	if len(s.Skipped) != 0 || s.Truncated {
		t.Errorf("skipped %v, truncated %v, want nothing", s.Skipped, s.Truncated)
	}
	checkCaps(t, DefaultBudget(), s)
}

// checkCaps compares what is shown with its budget and with the true count.
func checkCaps(t interface{ Errorf(string, ...any) }, b Budget, s Shown) {
	text := s.Text()
	real := tokenizer.Count(text)
	if real > s.Tokens.Total {
		t.Errorf("the text has %d tokens, Tokens.Total = %d:\n%s", real, s.Tokens.Total, text)
	}
	fulls := make([]string, len(s.Fulls))
	for i, p := range s.Fulls {
		fulls[i] = p.Text
		if n := tokenizer.Count(p.Text); n > p.Tokens {
			t.Errorf("%s has %d tokens, Tokens = %d:\n%s", p.ID, n, p.Tokens, p.Text)
		}
	}
	for _, c := range []struct {
		tier        Tier
		text        string
		sum, budget int
	}{
		{"document", s.Document, s.Tokens.Document, b.Map},
		{TierMap, s.Map, s.Tokens.Map, b.Map},
		{TierBriefs, s.briefs, s.Tokens.Briefs, b.Briefs},
		{TierCards, s.CardsText(), s.Tokens.Cards, b.Cards},
		{TierFulls, strings.Join(fulls, "\n\n"), s.Tokens.Fulls, b.Fulls},
		{"total", text, s.Tokens.Total, b.Total},
	} {
		if n := tokenizer.Count(c.text); n > c.sum || c.sum > max(0, c.budget) {
			t.Errorf("%s: %d tokens, said to be %d, budget %d:\n%s", c.tier, n, c.sum, c.budget, c.text)
		}
	}
	if s.Tokens.Total != s.Tokens.Document+s.Tokens.Map+s.Tokens.Briefs+s.Tokens.Cards+s.Tokens.Fulls {
		t.Errorf("Tokens = %+v, which does not add up", s.Tokens)
	}
}

func TestOwnWordsHaveTheirPrice(t *testing.T) {
	if got := countOwnWords(tokenizer.Count); got != o200kWords() {
		t.Errorf("countOwnWords = %+v, want %+v", got, o200kWords())
	}
	for _, n := range []int{1, 9, 10, 42, 99, 100, 500, mostNumbers} {
		if got, want := tokenizer.Count(fmt.Sprintf("%d.", n)), tokenizer.Count("999."); got != want {
			t.Errorf("Count(\"%d.\") = %d, want %d as all numbers", n, got, want)
		}
	}
}
