package show

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
)

// BenchmarkAssemble is what every turn costs: five briefs, a card and two full
// texts, the first of which is too long.
func BenchmarkAssemble(b *testing.B) {
	card := entry(capability.KindCard, "token-economy", func(e *catalog.Entry) { e.TokenBudget = 600 })
	in := Input{
		Map: MakeMap(slices.Values(inCategories(300)), "Ask before you send.", tokenizer.Count), Briefs: seedItems(),
		Cards: []Item{{ID: card.ID, Page: MakePage(card, capability.Detail{Body: strings.Repeat("Route cheap work. ", 40)}, nil, tokenizer.Count)}},
	}
	long := longSkill("long", 9000)
	small := seedPage()
	for _, bb := range []struct {
		name  string
		fulls []Item
	}{
		{"whole", []Item{{ID: small.ID, Page: small}}},
		{"excerpt", []Item{{ID: long.ID, Page: long}, {ID: small.ID, Page: small}}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			in.Fulls = bb.fulls
			b.ReportAllocs()
			for b.Loop() {
				if s := Assemble(DefaultBudget(), in); len(s.Briefs) != 5 {
					b.Fatalf("%d briefs", len(s.Briefs))
				}
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	s := Assemble(DefaultBudget(), Input{Briefs: seedItems(), Fulls: []Item{{ID: "x", Page: longSkill("long", 9000)}}})
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Text()
	}
}

func BenchmarkMakeBrief(b *testing.B) {
	e := entry(capability.KindTool, "web-search", func(e *catalog.Entry) {
		e.Description, e.Parameters = "Search the web for current information. Use it whenever something may have changed since you learned it.", params("query", "max_results", "lang")
	})
	b.ReportAllocs()
	for b.Loop() {
		_ = MakeBrief(e, tokenizer.Count)
	}
}

func BenchmarkMakePage(b *testing.B) {
	body := longSkill("long", 9000).Text()
	e := entry(capability.KindSkill, "s")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		_ = MakePage(e, capability.Detail{Body: body}, nil, tokenizer.Count)
	}
}

func BenchmarkMakeMap(b *testing.B) {
	for _, categories := range []int{40, 3000} {
		b.Run(fmt.Sprintf("%d categories of 15000", categories), func(b *testing.B) {
			list := inCategories(3000)
			for i, e := range list {
				e.Category = fmt.Sprintf("category-%d", i%categories)
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = MakeMap(slices.Values(list), "", tokenizer.Count)
			}
		})
	}
}
