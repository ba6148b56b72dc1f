package graph

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
)

// entry makes an active entry out of "kind:name", what it needs, and tags.
func entry(id string, requires []string, category string, tags ...string) *catalog.Entry {
	kind, name, _ := strings.Cut(id, ":")
	e := &catalog.Entry{
		Capability: &capability.Capability{
			ID: capability.ID(id), Kind: capability.Kind(kind), Name: name, Category: category, Tags: tags, Trust: capability.TrustUser,
		},
		State: catalog.Active, Available: true,
	}
	for _, r := range requires {
		e.Requires = append(e.Requires, capability.ID(r))
	}
	return e
}

func all(int) bool { return true }

// seedEntries are the capabilities that the second seed's table of edges names,
// sorted by id.
func seedEntries() []*catalog.Entry {
	return []*catalog.Entry{
		entry("skill:github", []string{"tool:cli-executor"}, "development", "git", "issues"),
		entry("skill:summarizer", nil, "text"),
		entry("tool:cli-executor", nil, "system", "shell"),
		entry("tool:news-search", nil, "news", "search", "api", "news"),
		entry("tool:web-browser", nil, "information", "browse"),
		entry("tool:web-search", nil, "information", "search", "api", "web"),
	}
}

const (
	github = iota
	summarizer
	cliExecutor
	newsSearch
	webBrowser
	webSearch
)

func seedGraph() *Graph {
	return Build(seedEntries(), []capability.Preset{{Name: "research", Members: []string{"tool:web-search", "summarizer"}}})
}

// TestS236SeedsEdges: the example of each type of edge in the second seed, with
// its weight and direction.
func TestS236SeedsEdges(t *testing.T) {
	g := seedGraph()
	for _, tt := range []struct {
		of   int
		want []Edge
	}{
		{github, []Edge{{DependsOn, cliExecutor, 1.0, true}}},
		{cliExecutor, []Edge{{DependsOn, github, 1.0, false}}},
		{summarizer, []Edge{{ComposedWith, webSearch, 0.5, false}}},
		{webSearch, []Edge{{TaggedWith, newsSearch, 0.6, false}, {ComposedWith, summarizer, 0.5, false}, {SameCategory, webBrowser, 0.1, false}}},
		{newsSearch, []Edge{{TaggedWith, webSearch, 0.6, false}}},
		{-1, nil},
		{6, nil},
	} {
		if got := g.Related(tt.of); !slices.Equal(got, tt.want) {
			t.Errorf("Related(%d) = %v, want %v", tt.of, got, tt.want)
		}
	}
	if nodes, edges := g.Stats(); nodes != 6 || edges != 2 {
		t.Errorf("Stats() = %d, %d, want 6 nodes and the 2 edges that were given", nodes, edges)
	}
}

// TestS2U05Subgraph: the relations among some, and of nothing else.
func TestS2U05Subgraph(t *testing.T) {
	g := seedGraph()
	got := g.Subgraph([]int{webSearch, cliExecutor, github, webSearch, newsSearch, 99, -1})
	want := Subgraph{
		Nodes: []int{github, cliExecutor, newsSearch, webSearch},
		Links: []Link{{github, cliExecutor, DependsOn, 1.0}, {newsSearch, webSearch, TaggedWith, 0.6}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Subgraph = %+v, want %+v", got, want)
	}
	many := Build(entriesOf(300, nil), nil)
	if s := many.Subgraph(upTo(300)); len(s.Nodes) != 256 || s.Cut != 44 {
		t.Errorf("Subgraph of 300 has %d nodes and cuts %d, want 256 and 44", len(s.Nodes), s.Cut)
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// entriesOf makes n tools, each as change makes it.
func entriesOf(n int, change func(i int, e *catalog.Entry)) []*catalog.Entry {
	out := make([]*catalog.Entry, n)
	for i := range out {
		out[i] = entry(fmt.Sprintf("tool:t%05d", i), nil, "")
		if change != nil {
			change(i, out[i])
		}
	}
	return out
}

// TestPresetMembersAreIdsOrNames: and a name that could mean two means the more
// trusted, or neither.
func TestPresetMembersAreIdsOrNames(t *testing.T) {
	entries := []*catalog.Entry{
		entry("card:deploy", nil, ""), entry("card:twin", nil, ""), entry("skill:deploy", nil, ""), entry("skill:twin", nil, ""),
		entry("tool:bad", nil, ""), entry("tool:build", nil, ""), entry("tool:test", nil, ""),
	}
	entries[0].Trust = capability.TrustWorkspace
	entries[4].State = catalog.Quarantined
	g := Build(entries, []capability.Preset{{Name: "ship", Members: []string{"tool:build", "test", "deploy", "twin", "bad", "nobody", "build"}}})
	want := []Edge{{ComposedWith, 2, 0.5, false}, {ComposedWith, 6, 0.5, false}}
	if got := g.Related(5); !slices.Equal(got, want) {
		t.Errorf("Related(tool:build) = %v, want %v", got, want)
	}
	if _, edges := g.Stats(); edges != 3 {
		t.Errorf("Stats() counts %d edges, want the 3 pairs of three members", edges)
	}
}

// TestQuarantinedHasNoRelation: nothing reaches it and nothing comes with it.
func TestQuarantinedHasNoRelation(t *testing.T) {
	entries := seedEntries()
	entries[cliExecutor].State = catalog.Quarantined
	entries[webSearch].State = catalog.Quarantined
	g := Build(entries, []capability.Preset{{Name: "research", Members: []string{"tool:web-search", "summarizer"}}})
	for i := range entries {
		if got := g.Related(i); got != nil {
			t.Errorf("Related(%s) = %v, want nothing", entries[i].ID, got)
		}
	}
	if got := g.Rerank([]Scored{{github, 0.9}}, Default(), all); len(got) != 1 || got[0].Attached != nil {
		t.Errorf("Rerank = %+v, want github with nothing attached", got)
	}
}

// TestOneEdgePerType: many shared tags outweigh a dependency and do not replace
// it (K2.12).
func TestOneEdgePerType(t *testing.T) {
	tags := []string{"a", "b", "c", "d", "E"}
	g := Build([]*catalog.Entry{
		entry("tool:a", []string{"tool:b", "tool:b", "tool:a"}, "x", tags...),
		entry("tool:b", nil, "x", "e", "d", "c", "b", "a", "a"),
	}, []capability.Preset{{Name: "p", Members: []string{"a", "b"}}, {Name: "q", Members: []string{"b", "a"}}})
	want := []Edge{{TaggedWith, 1, 1.5, false}, {DependsOn, 1, 1.0, true}, {ComposedWith, 1, 0.5, false}, {SameCategory, 1, 0.1, false}}
	if got := g.Related(0); !slices.Equal(got, want) {
		t.Errorf("Related = %v, want %v", got, want)
	}
	got := g.Rerank([]Scored{{0, 0.5}}, Default(), all)
	if len(got) != 1 || len(got[0].Attached) != 1 || got[0].Attached[0].Type != DependsOn {
		t.Errorf("Rerank = %+v, want tool:b attached as a dependency, once", got)
	}
}

// TestCategoryGroups: of two to eight of one kind.
func TestCategoryGroups(t *testing.T) {
	for _, n := range []int{1, 2, 8, 9} {
		g := Build(append(entriesOf(n, func(_ int, e *catalog.Entry) { e.Category = "Mail" }), entry("zkill:other", nil, "mail")), nil)
		want := 0
		if n >= 2 && n <= 8 {
			want = n - 1
		}
		if got := g.Related(0); len(got) != want {
			t.Errorf("a group of %d gives %d edges, want %d", n, len(got), want)
		}
	}
}

// TestRelatedIsBounded: by type, so that a common tag does not push a
// dependency out.
func TestRelatedIsBounded(t *testing.T) {
	g := Build(entriesOf(500, func(i int, e *catalog.Entry) {
		e.Tags = []string{"a", "b", "c", "d"}
		switch i {
		case 0:
			e.Requires = []capability.ID{"tool:t00499"}
		default:
			e.Requires = []capability.ID{"tool:t00000"}
		}
	}), nil)
	count := map[string]int{}
	for _, e := range g.Related(0) {
		count[fmt.Sprint(e.Type, e.Outward)]++
	}
	if count["DEPENDS_ONtrue"] != 1 || count["DEPENDS_ONfalse"] != 64 || count["TAGGED_WITHfalse"] != 64 || len(count) != 3 {
		t.Errorf("Related has %v, want the one dependency, 64 users and 64 of the same tags", count)
	}
}

// TestT05EdgesAreBounded: what is stored grows with what was written, not with
// the square of it (K2.02).
func TestT05EdgesAreBounded(t *testing.T) {
	const n = 10_000
	g := Build(taggedEntries(n), []capability.Preset{{Name: "everything", Members: memberNames(n)}})
	nodes, edges := g.Stats()
	if want := n - 1 + n*(n-1)/2; nodes != n || edges != want {
		t.Errorf("Stats() = %d, %d, want %d, %d", nodes, edges, n, want)
	}
	stored := 0
	for _, l := range []*lists{&g.needs, &g.users, &g.groups, &g.preset, &g.tags} {
		stored += len(l.all) + len(l.start)
	}
	if most := 2*n + 2*n + 5*n + 5*(n+1); stored > most {
		t.Errorf("%d numbers are stored, want at most %d: two for each requirement and member, one for each tag", stored, most)
	}
}

// taggedEntries makes n tools with five tags of a hundred each; all but the
// first need the one before.
func taggedEntries(n int) []*catalog.Entry {
	return entriesOf(n, func(i int, e *catalog.Entry) {
		e.Category = fmt.Sprintf("c%d", i/6)
		for k := range 5 {
			e.Tags = append(e.Tags, fmt.Sprintf("tag%02d", (i*(2*k+1)+k*k)%100))
		}
		if i > 0 {
			e.Requires = []capability.ID{capability.ID(fmt.Sprintf("tool:t%05d", i-1))}
		}
	})
}

func memberNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("t%05d", i)
	}
	return out
}

func TestEmptyGraph(t *testing.T) {
	for _, g := range []*Graph{{}, Build(nil, nil), Build(nil, []capability.Preset{{Name: "p", Members: []string{"x"}}})} {
		if got := g.Rerank([]Scored{{0, 1}}, Default(), all); len(got) != 0 {
			t.Errorf("Rerank on no nodes = %v, want nothing", got)
		}
		if got := g.Related(0); got != nil {
			t.Errorf("Related on no nodes = %v, want nothing", got)
		}
	}
}

// tenfold makes a preset of every ten.
func tenfold(n int) []capability.Preset {
	var out []capability.Preset
	names := memberNames(n)
	for len(names) >= 10 {
		out = append(out, capability.Preset{Name: names[0], Members: names[:10]})
		names = names[10:]
	}
	return out
}
