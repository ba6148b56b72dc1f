package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"

	"pgregory.net/rapid"
)

// A question is a random graph and what is asked of it.
type question struct {
	entries []*catalog.Entry
	graph   *Graph
	hits    []Scored
	cfg     Config
	kept    []bool
}

func (q *question) keep(i int) bool { return q.kept[i] }

func draw(t *rapid.T) *question {
	n := rapid.IntRange(1, 80).Draw(t, "n")
	ordinal := rapid.IntRange(0, n-1)
	q := &question{kept: make([]bool, n)}
	q.entries = entriesOf(n, func(i int, e *catalog.Entry) {
		e.Tags = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 6).Draw(t, "tags")
		e.Category = rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "category")
		for _, to := range rapid.SliceOfN(ordinal, 0, 4).Draw(t, "needs") {
			e.Requires = append(e.Requires, capability.ID(fmt.Sprintf("tool:t%05d", to)))
		}
		if rapid.IntRange(0, 19).Draw(t, "state") == 0 {
			e.State = catalog.Quarantined
		}
		q.kept[i] = rapid.IntRange(0, 4).Draw(t, "kept") > 0
	})
	var presets []capability.Preset
	for range rapid.IntRange(0, 5).Draw(t, "presets") {
		var p capability.Preset
		for _, m := range rapid.SliceOfN(ordinal, 0, 10).Draw(t, "members") {
			p.Members = append(p.Members, fmt.Sprintf("t%05d", m))
		}
		presets = append(presets, p)
	}
	q.graph = Build(q.entries, presets)
	// Coarse scores, so that there are ties.
	for range rapid.IntRange(0, 70).Draw(t, "hits") {
		q.hits = append(q.hits, Scored{rapid.IntRange(-2, n+2).Draw(t, "hit"), float64(rapid.IntRange(-1, 21).Draw(t, "score")) / 20})
	}
	q.cfg = Config{
		Use: true, Boost: rapid.Float64Range(0, 1).Draw(t, "boost"), Top: rapid.IntRange(0, 60).Draw(t, "top"),
		MaxAttached: rapid.IntRange(-1, 12).Draw(t, "attached"), MaxHops: rapid.IntRange(0, 6).Draw(t, "hops"),
	}
	return q
}

// TestRerankProperties: for any graph, hits and configuration.
func TestRerankProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t)
		base := map[int]float64{}
		for _, r := range q.graph.Rerank(q.hits, Config{}, q.keep) {
			base[r.Ordinal] = r.Score
		}
		got := q.graph.Rerank(q.hits, q.cfg, q.keep)
		if len(got) != len(base) {
			t.Fatalf("%d results, want the %d that may appear", len(got), len(base))
		}
		place := map[int]int{}
		cfg := q.cfg.filled()
		for i, r := range got {
			if _, twice := place[r.Ordinal]; twice {
				t.Fatalf("%d appears twice", r.Ordinal)
			}
			place[r.Ordinal] = i
			was := base[r.Ordinal]
			if !(r.Score >= was && r.Score <= 1) || r.Score-was > maxBoost/4+1e-12 || math.Abs(r.Score-r.Boost-was) > 1e-12 {
				t.Fatalf("result %+v had %v: out of bounds", r, was)
			}
			if i > 0 && r.Score > got[i-1].Score+equalWithin {
				t.Fatalf("result %d has %v after %v", i, r.Score, got[i-1].Score)
			}
			if (r.Boost > 0) != (len(r.From) > 0) && was > 0 && was < 1 && cfg.Boost > 1e-9 {
				t.Fatalf("result %+v: boost and reasons disagree", r)
			}
			for _, why := range r.From {
				if !q.kept[why.With] {
					t.Fatalf("result %+v is explained by something refused", r)
				}
			}
			if i >= cfg.Top && r.Attached != nil {
				t.Fatalf("result %d has attachments beyond the top %d", i, cfg.Top)
			}
		}
		q.checkOrder(t, got, base, place)
		for i := range got {
			q.checkAttached(t, got, i, cfg)
		}
	})
}

// checkOrder: what needs another stays before it.
func (q *question) checkOrder(t *rapid.T, got []Ranked, base map[int]float64, place map[int]int) {
	for _, r := range got {
		for _, need := range q.graph.needs.of(int32(r.Ordinal)) {
			if at, hit := place[int(need)]; hit && base[int(need)] < base[r.Ordinal] && at < place[r.Ordinal] {
				t.Fatalf("%d passed %d, which needs it", need, r.Ordinal)
			}
		}
	}
}

func (q *question) checkAttached(t *rapid.T, got []Ranked, i int, cfg Config) {
	r := got[i]
	if len(r.Attached) > cfg.MaxAttached {
		t.Fatalf("%d attachments, want at most %d", len(r.Attached), cfg.MaxAttached)
	}
	seen, companions, hops := map[int]bool{r.Ordinal: true}, 0, 0
	for _, hit := range got[:min(len(got), cfg.Top)] {
		seen[hit.Ordinal] = true
	}
	for _, a := range r.Attached {
		switch {
		case !q.kept[a.Ordinal] || !q.kept[a.Of]:
			t.Fatalf("attachment %+v was refused, or came through something refused", a)
		case seen[a.Ordinal]:
			t.Fatalf("attachment %+v is there already", a)
		case !(a.Score >= 0 && a.Score <= 1) || a.Hops < 1 || a.Hops > cfg.MaxHops:
			t.Fatalf("attachment %+v is out of bounds", a)
		case a.Type == DependsOn && (!contains(q.graph.needs.of(int32(a.Of)), int32(a.Ordinal)) || a.Hops < hops || companions > 0):
			t.Fatalf("attachment %+v is not needed, or out of order in %+v", a, r.Attached)
		case a.Type == ComposedWith && !q.graph.composed(int32(r.Ordinal), int32(a.Ordinal)):
			t.Fatalf("attachment %+v is not composed with %d", a, r.Ordinal)
		}
		seen[a.Ordinal], hops = true, a.Hops
		if a.Type == ComposedWith {
			companions++
		}
	}
	if companions > maxCompanion {
		t.Fatalf("%d companions, want at most %d", companions, maxCompanion)
	}
}

// TestOrderOfInputDoesNotMatter: in either mode.
func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t)
		q.cfg.Literal = rapid.Bool().Draw(t, "literal")
		want := q.graph.Rerank(q.hits, q.cfg, q.keep)
		before := slices.Clone(q.hits)
		shuffled := slices.Clone(q.hits)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		if got := q.graph.Rerank(shuffled, q.cfg, q.keep); !reflect.DeepEqual(got, want) {
			t.Fatalf("Rerank of shuffled hits = %+v, want %+v", got, want)
		}
		if !slices.Equal(before, q.hits) {
			t.Fatalf("Rerank changed its input")
		}
	})
}

// TestLiteralProperties: nothing refused, nothing twice, every number finite.
func TestLiteralProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t)
		q.cfg.Literal = true
		seen := map[int]bool{}
		last := math.Inf(1)
		for _, r := range q.graph.Rerank(q.hits, q.cfg, q.keep) {
			if !q.kept[r.Ordinal] || seen[r.Ordinal] || r.Score < 0 || r.Score > last || math.IsInf(r.Score, 0) || math.IsNaN(r.Score) {
				t.Fatalf("result %+v after %v: refused, twice, out of order or no number", r, last)
			}
			if r.Pulled && (r.Score > q.cfg.Boost || len(r.From) == 0) {
				t.Fatalf("result %+v was pulled in with more than Boost, or by nothing", r)
			}
			seen[r.Ordinal], last = true, r.Score
		}
	})
}

// TestRelatedIsSymmetric: an edge of one is an edge of the other, and the
// subgraph of everything has them all.
func TestRelatedIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t)
		if len(q.entries) > relatedOfType {
			return // the bound may cut an edge at one of its ends only
		}
		edges := 0
		for i := range q.entries {
			for _, e := range q.graph.Related(i) {
				edges++
				back := Edge{e.Type, i, e.Weight, e.Type == DependsOn && !e.Outward}
				if !slices.Contains(q.graph.Related(e.To), back) {
					t.Fatalf("Related(%d) has %+v, and Related(%d) has no %+v", i, e, e.To, back)
				}
			}
		}
		if links := q.graph.Subgraph(upTo(len(q.entries))).Links; 2*len(links) != edges {
			t.Fatalf("%d links, want half of %d edges", len(links), edges)
		}
	})
}
