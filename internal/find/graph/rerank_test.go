package graph

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
)

func ordinals(ranked []Ranked) []int {
	var out []int
	for _, r := range ranked {
		out = append(out, r.Ordinal)
	}
	return out
}

func attached(r Ranked) []int {
	var out []int
	for _, a := range r.Attached {
		out = append(out, a.Ordinal)
	}
	return out
}

// TestS246GithubBringsCliExecutor: the seed's own example. The dependency comes
// with the skill, whatever its score is, and the score is the seed's.
func TestS246GithubBringsCliExecutor(t *testing.T) {
	got := seedGraph().Rerank([]Scored{{github, 1.0}}, Default(), all)
	want := []Ranked{{
		Ordinal: github, Score: 1.0,
		Attached: []Attachment{{Ordinal: cliExecutor, Of: github, Hops: 1, Type: DependsOn, Score: 0.15}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Rerank = %+v, want %+v", got, want)
	}
}

// TestLiteralIsTheSeedsAlgorithm: steps 1 to 4 of the seed, with its numbers.
func TestLiteralIsTheSeedsAlgorithm(t *testing.T) {
	cfg := Default()
	cfg.Literal = true
	hits := []Scored{{webSearch, 0.8}, {newsSearch, 0.7}, {webBrowser, 0.9}, {github, 0.6}}
	got := seedGraph().Rerank(hits, cfg, all)
	want := []struct {
		ordinal int
		score   float64
		pulled  bool
	}{
		{webBrowser, 0.9 + 0.15*0.1, false},
		{webSearch, 0.8 + 0.15*0.6 + 0.15*0.1, false},
		{newsSearch, 0.7 + 0.15*0.6, false},
		{github, 0.6, false},
		{cliExecutor, 0.6 * 0.15 * 1.0, true},
		{summarizer, 0.8 * 0.15 * 0.5, true},
	}
	if len(got) != len(want) {
		t.Fatalf("Rerank = %+v, want %d results", got, len(want))
	}
	for i, w := range want {
		if r := got[i]; r.Ordinal != w.ordinal || math.Abs(r.Score-w.score) > 1e-12 || r.Pulled != w.pulled || r.Attached != nil {
			t.Errorf("result %d = %+v, want %+v", i, r, w)
		}
	}
	if from := got[4].From; !slices.Equal(from, []Reason{{DependsOn, github, 1.0}}) {
		t.Errorf("cli-executor came in from %v, want github", from)
	}
	if from := got[1].From; len(from) != 2 {
		t.Errorf("web-search was raised by %v, want a tag edge and a category edge", from)
	}
}

// TestLiteralTakesTheBestParent: and a dependency pulls in along its arrow only.
func TestLiteralTakesTheBestParent(t *testing.T) {
	g := Build([]*catalog.Entry{
		entry("tool:a", []string{"tool:c"}, ""), entry("tool:b", []string{"tool:c"}, ""), entry("tool:c", nil, ""),
	}, nil)
	cfg := Config{Use: true, Literal: true, Boost: 0.5}
	got := g.Rerank([]Scored{{0, 0.4}, {1, 0.8}}, cfg, all)
	if !slices.Equal(ordinals(got), []int{1, 0, 2}) || got[2].Score != 0.4 || len(got[2].From) != 2 {
		t.Errorf("Rerank = %+v, want c at 0.4 for both reasons", got)
	}
	if got := g.Rerank([]Scored{{2, 0.8}}, cfg, all); len(got) != 1 {
		t.Errorf("Rerank of a hub = %+v, want it alone", got)
	}
}

// TestHubBringsNoDependants: five hundred need it; none comes with it (K2.13).
func TestHubBringsNoDependants(t *testing.T) {
	g := Build(entriesOf(501, func(i int, e *catalog.Entry) {
		if i > 0 {
			e.Requires = []capability.ID{"tool:t00000"}
		}
	}), nil)
	got := g.Rerank([]Scored{{0, 0.9}}, Default(), all)
	if len(got) != 1 || got[0].Attached != nil {
		t.Errorf("Rerank of a hub = %+v, want it alone", got)
	}
}

// TestNeedsOfMany: what one needs hundreds of is bounded, and hundreds of hits that
// are named twice are each there once.
func TestNeedsOfMany(t *testing.T) {
	const n = 600
	var hits []Scored
	g := Build(entriesOf(n, func(i int, e *catalog.Entry) {
		if i > 0 {
			hits = append(hits, Scored{i, 0.1}, Scored{i, 0.2})
			return
		}
		for k := range n - 1 {
			e.Requires = append(e.Requires, capability.ID(fmt.Sprintf("tool:t%05d", k+1)))
		}
	}), nil)
	cfg := Config{Use: true, Boost: 0.15, Top: 1, MaxAttached: 2 * n}
	got := g.Rerank(append(hits, Scored{0, 0.9}), cfg, all)
	order := ordinals(got)
	slices.Sort(order)
	if got[0].Ordinal != 0 || !slices.Equal(order, upTo(n)) || len(got[0].Attached) == 0 || len(got[0].Attached) >= maxReached {
		t.Errorf("Rerank gives %d hits, first %+v; want each of %d once, and fewer than %d attached to the one that needs them", len(got), got[0], n, maxReached)
	}
}

// TestAttachments: nearest first, then by id; through other hits and around
// cycles; what is a hit is not attached again.
func TestAttachments(t *testing.T) {
	// a needs c and d; c needs e, d needs b and e, e needs f and a, f needs g.
	g := Build([]*catalog.Entry{
		entry("tool:a", []string{"tool:d", "tool:c"}, ""), entry("tool:b", nil, ""), entry("tool:c", []string{"tool:e"}, ""),
		entry("tool:d", []string{"tool:e", "tool:b"}, ""), entry("tool:e", []string{"tool:f", "tool:a"}, ""),
		entry("tool:f", []string{"tool:g"}, ""), entry("tool:g", nil, ""),
	}, nil)
	const a, b, c, d, e, f, last = 0, 1, 2, 3, 4, 5, 6
	for _, tt := range []struct {
		name     string
		hits     []Scored
		hops, n  int
		refuse   []int
		attached []int // to a
	}{
		{"all", []Scored{{a, 0.9}}, 9, 9, nil, []int{c, d, b, e, f, last}},
		{"defaults reach three hops", []Scored{{a, 0.9}}, 0, 0, nil, []int{c, d, b, e, f}},
		{"one hop", []Scored{{a, 0.9}}, 1, 9, nil, []int{c, d}},
		{"two hops", []Scored{{a, 0.9}}, 2, 9, nil, []int{c, d, b, e}},
		{"the nearest under a cap", []Scored{{a, 0.9}}, 9, 3, nil, []int{c, d, b}},
		{"none", []Scored{{a, 0.9}}, 9, -1, nil, nil},
		{"a hit is not attached, what it needs is", []Scored{{a, 0.9}, {e, 0.2}}, 9, 9, nil, []int{c, d, b, f, last}},
		{"a refused one is not attached", []Scored{{a, 0.9}}, 9, 9, []int{c, b}, []int{d, e, f, last}},
		{"nor is what is reached through it", []Scored{{a, 0.9}}, 9, 9, []int{e}, []int{c, d, b}},
	} {
		cfg := Config{Use: true, Boost: 0.15, MaxHops: tt.hops, MaxAttached: tt.n}
		got := g.Rerank(tt.hits, cfg, func(i int) bool { return !slices.Contains(tt.refuse, i) })
		if list := attached(got[0]); !slices.Equal(list, tt.attached) {
			t.Errorf("%s: attached %v, want %v", tt.name, list, tt.attached)
		}
	}
	got := g.Rerank([]Scored{{a, 0.8}}, Default(), all)[0].Attached
	want := Attachment{Ordinal: b, Of: d, Hops: 2, Type: DependsOn, Score: 0.8 * 0.15 * 0.15}
	if len(got) < 3 || got[2] != want {
		t.Errorf("third attachment of %+v, want %+v", got, want)
	}
}

// TestHitsBeyondTopAreAttached: a dependency far down the list will not be
// shown, so it comes with what needs it.
func TestHitsBeyondTopAreAttached(t *testing.T) {
	g := seedGraph()
	hits := []Scored{{github, 0.9}, {summarizer, 0.5}, {cliExecutor, 0.1}}
	for top, want := range map[int][]int{1: {cliExecutor}, 2: {cliExecutor}, 3: nil} {
		cfg := Default()
		cfg.Top = top
		if got := attached(g.Rerank(hits, cfg, all)[0]); !slices.Equal(got, want) {
			t.Errorf("Top %d: attached %v, want %v", top, got, want)
		}
	}
}

// TestCompanionsComeLast: at most two, after what is needed.
func TestCompanionsComeLast(t *testing.T) {
	g := Build(entriesOf(8, func(i int, e *catalog.Entry) {
		if i == 3 {
			e.Requires = []capability.ID{"tool:t00007"}
		}
	}), []capability.Preset{{Name: "p", Members: memberNames(8)}})
	got := g.Rerank([]Scored{{3, 0.8}}, Default(), func(i int) bool { return i != 0 })[0].Attached
	want := []Attachment{
		{7, 3, 1, DependsOn, 0.8 * 0.15}, {1, 3, 1, ComposedWith, 0.8 * 0.15 * 0.5}, {2, 3, 1, ComposedWith, 0.8 * 0.15 * 0.5},
	}
	if !slices.Equal(got, want) {
		t.Errorf("attached %+v, want %+v", got, want)
	}
}

// TestT05FiltersHoldAfterRerank: what keep refuses never comes back (K2.08).
func TestT05FiltersHoldAfterRerank(t *testing.T) {
	g := seedGraph()
	entries := seedEntries()
	skills := func(i int) bool { return entries[i].Kind == capability.KindSkill }
	hits := []Scored{{github, 0.9}, {webSearch, 0.9}, {summarizer, 0.3}}
	for _, literal := range []bool{false, true} {
		cfg := Default()
		cfg.Literal = literal
		got := g.Rerank(hits, cfg, skills)
		if !slices.Equal(ordinals(got), []int{github, summarizer}) || got[0].Attached != nil || got[1].Boost != 0 {
			t.Errorf("literal %v: Rerank with kind skill = %+v, want the two skills alone", literal, got)
		}
		if got := g.Rerank(hits, cfg, nil); got != nil {
			t.Errorf("literal %v: Rerank without keep = %+v, want nothing", literal, got)
		}
	}
}

// TestBoostIsSmallAndMutual: hits that belong together rise a little, and never
// past what is clearly better (K2.04).
func TestBoostIsSmallAndMutual(t *testing.T) {
	g := seedGraph()
	got := g.Rerank([]Scored{{github, 0.50}, {newsSearch, 0.51}, {webBrowser, 0.6}, {cliExecutor, 0.2}}, Default(), all)
	if want := []int{webBrowser, github, newsSearch, cliExecutor}; !slices.Equal(ordinals(got), want) {
		t.Errorf("order %v, want %v", ordinals(got), want)
	}
	for _, tt := range []struct {
		at   int
		want float64
		from []Reason
	}{
		{0, 0, nil}, {1, 0.15 * 0.25, []Reason{{DependsOn, cliExecutor, 1.0}}}, {2, 0, nil}, {3, 0.15 * 0.16, []Reason{{DependsOn, github, 1.0}}},
	} {
		if r := got[tt.at]; math.Abs(r.Boost-tt.want) > 1e-12 || !slices.Equal(r.From, tt.from) {
			t.Errorf("result %d = %+v, want boost %v from %v", tt.at, r, tt.want, tt.from)
		}
	}
}

// TestTagsOnlyBreakTies: the one of two equal hits that relates to the rest
// comes first; a better score always stands.
func TestTagsOnlyBreakTies(t *testing.T) {
	g := Build([]*catalog.Entry{
		entry("tool:a", nil, ""), entry("tool:b", nil, "", "x", "y"), entry("tool:c", nil, "", "x", "y", "z"), entry("tool:d", nil, "", "x", "y", "z"),
	}, nil)
	for _, tt := range []struct {
		hits []Scored
		want []int
	}{
		{[]Scored{{0, 0.5}, {1, 0.5}, {2, 0.9}}, []int{2, 1, 0}},
		{[]Scored{{0, 0.501}, {1, 0.5}, {2, 0.9}}, []int{2, 0, 1}},
		{[]Scored{{0, 0.5}, {1, 0.5}, {2, 0.5}, {3, 0.5}}, []int{2, 3, 1, 0}},
		{[]Scored{{0, 0.3 + 0.2}, {1, math.Nextafter(0.5, 0)}, {2, 0.9}}, []int{2, 1, 0}},
	} {
		got := g.Rerank(tt.hits, Default(), all)
		if !slices.Equal(ordinals(got), tt.want) {
			t.Errorf("Rerank(%v) = %v, want %v", tt.hits, ordinals(got), tt.want)
		}
		if i := slices.IndexFunc(got, func(r Ranked) bool { return r.Boost != 0 }); i >= 0 {
			t.Errorf("Rerank(%v): %+v has a boost, want none for tags", tt.hits, got[i])
		}
	}
}

// TestBadScores: no number, out of bounds, named twice, not there.
func TestBadScores(t *testing.T) {
	g := seedGraph()
	hits := []Scored{
		{github, math.NaN()}, {summarizer, math.Inf(1)}, {cliExecutor, math.Inf(-1)}, {newsSearch, 0.9}, {summarizer, 7},
		{webSearch, 0.2}, {webSearch, 0.6}, {-1, 1}, {6, 1}, {math.MaxInt, 1},
	}
	for _, cfg := range []Config{{}, Default(), {Use: true, Boost: math.NaN()}, {Use: true, Boost: math.Inf(1), Top: math.MaxInt, MaxHops: math.MaxInt}} {
		got := g.Rerank(hits, cfg, all)
		if want := []int{summarizer, newsSearch, webSearch, github, cliExecutor}; !slices.Equal(ordinals(got), want) {
			t.Errorf("Rerank with %+v = %v, want %v", cfg, ordinals(got), want)
		}
		for _, r := range got {
			if !(r.Score >= 0 && r.Score <= 1) {
				t.Errorf("Rerank with %+v: score %v, want 0 to 1", cfg, r.Score)
			}
		}
	}
}

// TestGraphOff: useGraphReranking: false leaves the search alone.
func TestGraphOff(t *testing.T) {
	got := seedGraph().Rerank([]Scored{{cliExecutor, 0.2}, {github, 0.9}}, Config{Boost: 0.15, Literal: true}, all)
	if want := []Ranked{{Ordinal: github, Score: 0.9}, {Ordinal: cliExecutor, Score: 0.2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("Rerank = %+v, want %+v", got, want)
	}
}

// TestManyAtOnce: any number of goroutines may use a graph.
func TestManyAtOnce(t *testing.T) {
	g := Build(taggedEntries(200), tenfold(200))
	hits := []Scored{{5, 0.9}, {6, 0.9}, {7, 0.8}, {60, 0.1}}
	want := g.Rerank(hits, Default(), all)
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			g.Related(7)
			if got := g.Rerank(hits, Default(), all); !reflect.DeepEqual(got, want) {
				t.Errorf("Rerank = %+v, want %+v", got, want)
			}
		})
	}
	done.Wait()
}
