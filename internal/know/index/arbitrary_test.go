package index

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"ken/capability"
)

// tool makes a capability.
func tool(name, description string, change ...func(*capability.Capability)) *capability.Capability {
	c := &capability.Capability{
		ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Description: description,
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func alias(names ...string) func(*capability.Capability) {
	return func(c *capability.Capability) { c.Aliases = names }
}

// viewOf makes a view of all of a list.
func viewOf(list ...*capability.Capability) *View { return NewView(Part{Segment: Build(list)}) }

// A found hit, by what does not depend on segments and slots.
type found struct {
	ID    capability.ID
	Score float64
	Exact bool
	Near  float64
	Words []string
}

// told is an answer without segments and slots.
type told struct {
	Fit  float64
	Hits []found
}

func tell(v *View, a Answer) told {
	out := told{Fit: a.Fit}
	for _, h := range a.Hits {
		out.Hits = append(out.Hits, found{v.parts[h.Part].At(h.Slot).ID, h.Score, h.Exact, h.Near, h.Words})
	}
	return out
}

// ids returns what a search finds.
func ids(v *View, q Query, limit int) []string {
	var out []string
	for _, h := range v.Search(q, limit, nil).Hits {
		out = append(out, string(v.parts[h.Part].At(h.Slot).ID))
	}
	return out
}

// names is ids by a text alone, without the kind before each name.
func names(v *View, text string) []string {
	out := ids(v, Query{Text: text}, 10)
	for i := range out {
		out[i] = strings.TrimPrefix(out[i], "tool:")
	}
	return out
}

// sound says what is wrong with an answer whatever was asked.
func sound(v *View, a Answer, limit int) error {
	within := func(x float64) bool { return x >= 0 && x <= 1 } // NaN is not
	if !within(a.Fit) {
		return fmt.Errorf("Fit = %v", a.Fit)
	}
	if len(a.Hits) > max(0, limit) {
		return fmt.Errorf("%d hits, want at most %d", len(a.Hits), limit)
	}
	for i, h := range a.Hits {
		if !within(h.Score) || math.IsNaN(h.Near) || math.IsInf(h.Near, 0) {
			return fmt.Errorf("hit %d = %+v", i, h)
		}
		if v.parts[h.Part].At(h.Slot) == nil || !v.parts[h.Part].visible.Has(h.Slot) {
			return fmt.Errorf("hit %d = %+v, which is not visible", i, h)
		}
		if i == 0 {
			continue
		}
		before := a.Hits[i-1]
		if before.Score < h.Score || !before.Exact && h.Exact {
			return fmt.Errorf("hit %d = %+v is better than %+v before it", i, h, before)
		}
		if slices.ContainsFunc(a.Hits[:i], func(b Hit) bool { return b.Part == h.Part && b.Slot == h.Slot }) {
			return fmt.Errorf("hit %d = %+v is there twice", i, h)
		}
	}
	return nil
}

// vocabulary has what texts are made of: few words, so that they meet, and all
// that is odd about words.
var vocabulary = []string{
	"search", "searching", "searches", "flight", "flights", "book", "booking", "weather", "mail", "send", "sender",
	"GitHub", "github", "git", "hub", "gitHub", "getHTTPPage", "http", "page", "areYou", "areyou", "web_search", "web-search", "a.b",
	"Rechnung", "Rechnungen", "Kalender", "suchen", "der", "die", "das", "und", "mit", "für", "ist",
	"facture", "factures", "chercher", "le", "les", "des", "avec", "pour",
	"найти", "письмо", "письма", "и", "в", "на", "с",
	"天気", "天気予報", "メール", "サーバー", "を送る", "날씨", "อากาศ", "1", "2024", "٣", "S3",
	"the", "a", "of", "to", "do", "it", "again", "other", "one",
	"\U0001F600", "\xff\xfe", "e\u0301te\u0301", "été", "ÉTÉ", "…", "zork", "qux",
}

func words(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, w := range rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, most).Draw(t, "words") {
			b.WriteString(w)
			b.WriteString(rapid.SampledFrom([]string{" ", " ", " ", "_", ", ", ". ", "\n", ""}).Draw(t, "between"))
		}
		return b.String()
	})
}

// capabilities makes up n capabilities with ids of their own.
func capabilities(n int) *rapid.Generator[[]*capability.Capability] {
	return rapid.Custom(func(t *rapid.T) []*capability.Capability {
		few := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) capability.Capability {
			return capability.Capability{
				Name: words(3).Draw(t, "name"), Description: words(12).Draw(t, "description"),
				DisplayName: words(2).Draw(t, "display name"), Category: words(1).Draw(t, "category"),
				Tags:       rapid.SliceOfN(words(2), 0, 2).Draw(t, "tags"),
				Aliases:    rapid.SliceOfN(words(1), 0, 2).Draw(t, "aliases"),
				Parameters: rapid.SliceOfN(rapid.Custom(parameter), 0, 2).Draw(t, "parameters"),
				Triggers:   &capability.Triggers{Keywords: rapid.SliceOfN(words(2), 0, 1).Draw(t, "keywords")},
			}
		}), min(n, 1), min(n, 12)).Draw(t, "capabilities")
		out := make([]*capability.Capability, n)
		for i := range out { // many are alike, so that equal scores are common
			c := few[i%max(1, len(few))]
			c.ID = capability.ID(fmt.Sprintf("t:%03d", i))
			out[i] = &c
		}
		return out
	})
}

func parameter(t *rapid.T) capability.Parameter {
	return capability.Parameter{Name: words(2).Draw(t, "name"), Description: words(4).Draw(t, "description")}
}

const testDims = 70 // two words of bits, the second one not full

// vector makes up a vector: of one of few directions, so that equal ones are
// common, or one that says nothing.
func vector(t *rapid.T) []float32 {
	v := make([]float32, testDims)
	switch kind := rapid.IntRange(-2, 20).Draw(t, "direction"); kind {
	case -2:
		v[3] = float32(math.NaN())
	case -1:
	default:
		for i := range v {
			v[i] = float32((i*7919+kind*104729)%1009-504) / 504
		}
	}
	return v
}

// vectorsFor makes up vectors for some of a list, by id.
func vectorsFor(t *rapid.T, list []*capability.Capability) map[capability.ID][]float32 {
	out := map[capability.ID][]float32{}
	if len(list) == 0 || !rapid.Bool().Draw(t, "with vectors") {
		return out
	}
	few := rapid.SliceOfN(rapid.Custom(vector), 1, 5).Draw(t, "vectors")
	skip := rapid.IntRange(2, 9).Draw(t, "skip")
	for i, c := range list {
		if i%skip != 0 {
			out[c.ID] = few[i%len(few)]
		}
	}
	return out
}

// A stopper is a *testing.T or a *rapid.T.
type stopper interface {
	Helper()
	Fatal(args ...any)
}

// give puts vectors into a segment.
func give(t stopper, s *Segment, of map[capability.ID][]float32) *Segment {
	t.Helper()
	bySlot := map[int][]float32{}
	for slot := range s.Len() {
		if c := s.At(slot); c != nil && of[c.ID] != nil {
			bySlot[slot] = of[c.ID]
		}
	}
	if len(bySlot) == 0 {
		return s
	}
	next, err := s.WithVectors("model", testDims, bySlot)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// query makes up what is asked.
func query(t *rapid.T) Query {
	q := Query{Text: words(10).Draw(t, "text")}
	for range rapid.IntRange(0, 2).Draw(t, "messages before") {
		q.Before = append(q.Before, Before{words(6).Draw(t, "before"), rapid.SampledFrom([]float64{0, 0.2, 0.35, 1}).Draw(t, "weight")})
	}
	if rapid.Bool().Draw(t, "with vector") {
		q.Vector = vector(t)
	}
	return q
}

// size is how large a catalog is: small, beyond the shortlist, and beyond what
// is sorted at once.
func size(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 1, 2, 5, 9, 60, 250}).Draw(t, "size")
}
