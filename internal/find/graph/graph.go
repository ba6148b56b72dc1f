// Package graph holds how the capabilities of one snapshot relate to each
// other, and uses that on the results of a search.
//
// There are four relations. DEPENDS_ON and COMPOSED_WITH are declared by authors,
// so they are stored. TAGGED_WITH and SAME_CATEGORY follow from labels: stored,
// they would be quadratic in the catalog (1.7 million edges for 10,000
// capabilities), so they are worked out between the few candidates of a query
// when they are needed.
//
// [Graph.Rerank] does two things with them. It raises hits that belong to each
// other, a little and never past what is clearly better; and it attaches to a
// hit what that hit cannot work without, which the words of a query hardly ever
// name. An attachment does not compete by score: it comes with its hit.
//
//	g := graph.Build(snapshot.Entries(), snapshot.Presets())
//	ranked := g.Rerank(hits, graph.Default(), func(i int) bool { return visible[i] })
//
// Everything is named by ordinal: the position of an entry in the list that
// the graph was built from. Entries are sorted by id, so the order of ordinals
// is the order of ids.
package graph

import "slices"

// An EdgeType says how two capabilities relate.
type EdgeType string

// Types of edges.
const (
	DependsOn    EdgeType = "DEPENDS_ON"    // one cannot work without the other; directed
	ComposedWith EdgeType = "COMPOSED_WITH" // members of one preset
	TaggedWith   EdgeType = "TAGGED_WITH"   // at least two tags in common
	SameCategory EdgeType = "SAME_CATEGORY" // same kind and category, in a group of two to eight
)

// What each relation weighs. A tag counts each time, from the second on.
const (
	weightDepends  = 1.0
	weightComposed = 0.5
	weightTag      = 0.3
	weightCategory = 0.1
)

const (
	minSharedTags = 2
	minCategory   = 2
	maxCategory   = 8
)

// A capability may be in any number of presets and have any number of tags;
// this many of each, the first ones, relate it to others. It keeps a query
// cheap whatever a source writes.
const (
	maxPresetsOf = 64
	maxTagsOf    = 64
)

// A Graph is the relations of one snapshot. It does not change, and any number
// of goroutines may use it. The zero Graph has no nodes.
//
// What is not active (quarantined, say) is a node without any relation. The
// graph knows nothing else of who may see what: see [Graph.Rerank].
type Graph struct {
	nodes int

	needs  lists // what each one depends on
	users  lists // and who depends on it
	groups lists // the presets each one is in
	preset lists // and the members of each preset
	tags   lists // the tags of each, interned

	tagBits  []uint64 // one bit for each tag, to see quickly that two have none in common
	category []int32  // the kind and category of each, or -1 where the group is too small or too large

	pairs int // in presets
}

// Stats counts the nodes and the edges that were given: dependencies, and
// pairs in presets, a pair in two presets twice. Tags and categories have no
// edges to be counted.
func (g *Graph) Stats() (nodes, edges int) { return g.nodes, len(g.needs.all) + g.pairs }

func (g *Graph) has(ordinal int) bool { return ordinal >= 0 && ordinal < g.nodes }

// lists are many short sorted lists in one piece of memory.
type lists struct {
	start []int32 // one more than there are lists; none at all when all are empty
	all   []int32
}

// of returns the list of i, which must not be changed.
func (l *lists) of(i int32) []int32 {
	if l.start == nil {
		return nil
	}
	return l.all[l.start[i]:l.start[i+1]]
}

// A pair puts one value into one list.
type pair struct{ list, value int32 }

// gather makes n lists of pairs: each sorted, nothing in it twice.
func gather(n int, pairs []pair) lists {
	if len(pairs) == 0 {
		return lists{}
	}
	start := make([]int32, n+1)
	for _, p := range pairs {
		start[p.list+1]++
	}
	for i := range n {
		start[i+1] += start[i]
	}
	all := make([]int32, len(pairs))
	next := slices.Clone(start)
	for _, p := range pairs {
		all[next[p.list]] = p.value
		next[p.list]++
	}
	kept := int32(0)
	for i := range n {
		list := all[start[i]:start[i+1]]
		slices.Sort(list)
		list = slices.Compact(list)
		start[i] = kept
		kept += int32(copy(all[kept:], list))
	}
	start[n] = kept
	return lists{start: start, all: slices.Clip(all[:kept])}
}
