package graph

import (
	"fmt"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/testkit"
)

// TestLinks: every relation that is drawn is one that Related knows, nothing is
// drawn twice, and what is left out is counted.
func TestLinks(t *testing.T) {
	entries := taggedEntries(200)
	presets := append(tenfold(100), capability.Preset{Name: "pair", Members: memberNames(200)[150:152]})
	g := Build(entries, presets)
	links, cut := g.Links()
	seen := map[Link]bool{}
	count := map[EdgeType]int{}
	for _, l := range links {
		if seen[l] || l.Type != DependsOn && l.From >= l.To {
			t.Errorf("%+v is there twice, or from the higher ordinal", l)
		}
		seen[l] = true
		count[l.Type]++
		known := false
		for _, s := range g.Subgraph([]int{l.From, l.To}).Links {
			known = known || s == l
		}
		if !known {
			t.Errorf("%+v is drawn, and Subgraph gives %+v", l, g.Subgraph([]int{l.From, l.To}).Links)
		}
	}
	want := map[EdgeType]int{}
	for _, l := range allLinks(g) {
		want[l.Type]++
	}
	if count[DependsOn] != want[DependsOn] || count[ComposedWith] == 0 || count[TaggedWith] == 0 {
		t.Errorf("drawn %v of %v; want all dependencies, and some of each", count, want)
	}
	all := want[DependsOn] + want[ComposedWith] + want[TaggedWith]
	if len(links)+cut != all {
		t.Errorf("%d drawn and %d cut, want %d in all", len(links), cut, all)
	}
}

func allLinks(g *Graph) []Link {
	var out []Link
	for a := range int32(g.nodes) {
		for b := a + 1; b < int32(g.nodes); b++ {
			out = g.links(out, a, b)
		}
	}
	return out
}

// TestKnit: a group stays together, whatever its size, with few lines.
func TestKnit(t *testing.T) {
	for n := range 60 {
		members := make([]int32, n)
		for i := range members {
			members[i] = int32(i * 3)
		}
		joined, drawn := map[int32]int{}, map[pairing]bool{}
		cut := Knit(members, func(a, b int32) {
			if a == b || drawn[pairOf(a, b)] {
				t.Errorf("of %d: %d and %d are joined twice, or with itself", n, a, b)
			}
			drawn[pairOf(a, b)] = true
			joined[a]++
			joined[b]++
		})
		if len(drawn)+cut != n*(n-1)/2 || n > 1 && len(joined) != n {
			t.Errorf("of %d: %d pairs drawn, %d cut, %d joined", n, len(drawn), cut, len(joined))
		}
	}
}

// TestLargeLinksOfCommonTags: what a source writes cannot make the work quadratic
// without bound.
func TestLargeLinksOfCommonTags(t *testing.T) {
	testkit.CI(t, "thousands of entries with the same tags")
	var tags []string
	for i := range maxTagsOf {
		tags = append(tags, fmt.Sprint("tag", i))
	}
	var entries []*catalog.Entry
	for i := range 6000 {
		entries = append(entries, &catalog.Entry{State: catalog.Active, Capability: &capability.Capability{ID: capability.ID(fmt.Sprintf("tool:%05d", i)), Tags: tags}})
	}
	if links, _ := Build(entries, nil).Links(); len(links) > linksByTags*len(entries) {
		t.Errorf("%d links of %d entries", len(links), len(entries))
	}
}
