package ranking

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit/indextest"
)

// viewOf makes a view of all of a list.
func viewOf(list ...*capability.Capability) *View { return NewView(Part{Segment: index.Build(list)}) }

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

// query makes up what is asked.
func query(t *rapid.T) Query {
	q := Query{Text: indextest.Text(10).Draw(t, "text")}
	for range rapid.IntRange(0, 2).Draw(t, "messages before") {
		q.Before = append(q.Before, Before{indextest.Text(6).Draw(t, "before"), rapid.SampledFrom([]float64{0, 0.2, 0.35, 1}).Draw(t, "weight")})
	}
	if rapid.Bool().Draw(t, "with vector") {
		q.Vector = indextest.Vector(t)
	}
	return q
}
