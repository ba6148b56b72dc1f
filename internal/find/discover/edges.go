package discover

import (
	"strings"

	"ken/internal/find/graph"
)

// Edges are relations in columns, for a drawing. The ends are ordinals of the
// snapshot. They must not be changed.
type Edges struct {
	From, To []int32
	Type     []uint8 // place in [EdgeTypes]
	Weight   []float32

	// Cut counts the relations that were left out.
	Cut int
}

// EdgeTypes returns the types of edges, in the order in which they are drawn.
func EdgeTypes() []graph.EdgeType {
	return []graph.EdgeType{graph.DependsOn, graph.ComposedWith, graph.TaggedWith, graph.SameCategory}
}

// mostEdges is how many lines a drawing can have and be read.
const mostEdges = 20_000

type edgesKey struct{}

// Edges returns how the visible entries relate, worked out once: see
// [graph.Graph.Links]. Those of one kind and category are joined too, however
// many they are, so that they are drawn together; in ranking large categories
// count nothing.
func (v *View) Edges() *Edges {
	return v.Keep(edgesKey{}, func() any { return v.makeEdges() }).(*Edges)
}

func (v *View) makeEdges() *Edges {
	out := &Edges{}
	number := map[graph.EdgeType]uint8{}
	for i, t := range EdgeTypes() {
		number[t] = uint8(i)
	}
	add := func(from, to int32, t graph.EdgeType, weight float64) {
		if len(out.From) == mostEdges {
			out.Cut++
			return
		}
		out.From, out.To = append(out.From, from), append(out.To, to)
		out.Type, out.Weight = append(out.Type, number[t]), append(out.Weight, float32(weight))
	}
	links, cut := v.graph().Links()
	out.Cut = cut
	for _, l := range links {
		add(int32(l.From), int32(l.To), l.Type, l.Weight)
	}
	for _, members := range v.categories() {
		out.Cut += graph.Knit(members, func(a, b int32) {
			add(min(a, b), max(a, b), graph.SameCategory, graph.WeightCategory)
		})
	}
	return out
}

// categories returns the visible entries of one kind and category, in the order
// of the first of each.
func (v *View) categories() [][]int32 {
	type group struct{ kind, category string }
	number := map[group]int{}
	var out [][]int32
	for i, e := range v.snapshot.Entries() {
		if !v.visible.Has(i) || e.Category == "" {
			continue
		}
		key := group{string(e.Kind), strings.ToLower(e.Category)}
		n, ok := number[key]
		if !ok {
			n = len(out)
			number[key] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], int32(i))
	}
	return out
}
