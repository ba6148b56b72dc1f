package graph

import (
	"cmp"
	"slices"
)

// An Edge leads from one capability to another.
type Edge struct {
	Type    EdgeType `json:"type"`
	To      int      `json:"to"`
	Weight  float64  `json:"weight"`
	Outward bool     `json:"outward,omitempty"` // of DEPENDS_ON: this one needs To, rather than being needed by it
}

// A Link is an edge with both of its ends. Only DEPENDS_ON has a direction;
// the others are given once, from the lower ordinal.
type Link struct {
	From, To int
	Type     EdgeType
	Weight   float64
}

// A Subgraph is some capabilities and what relates them.
type Subgraph struct {
	Nodes []int // sorted
	Links []Link
	Cut   int // how many more were asked for than a subgraph holds
}

// relatedOfType and subgraphNodes keep the answers about very common tags, or
// about a whole catalog, readable and cheap.
const (
	relatedOfType = 64
	subgraphNodes = 256
)

// Related returns the edges of one capability, heaviest first, then by ordinal.
// There are at most 64 of each type, and of DEPENDS_ON 64 in each direction, the
// heaviest. Two capabilities have one edge for each way in which they relate;
// none stands for another. It looks at every entry once, to compare tags, so it
// is for people who ask, not for each query.
//
// It does not know who may see what: the caller leaves out what must not be
// shown.
func (g *Graph) Related(ordinal int) []Edge {
	if !g.has(ordinal) {
		return nil
	}
	me := int32(ordinal)
	var outward, inward, composed, tagged, alike []Edge
	for _, to := range g.needs.of(me) {
		outward = append(outward, Edge{DependsOn, int(to), weightDepends, true})
	}
	for _, to := range g.users.of(me) {
		inward = append(inward, Edge{DependsOn, int(to), weightDepends, false})
	}
	for _, to := range g.companions(nil, me, g.nodes) {
		composed = append(composed, Edge{ComposedWith, int(to), weightComposed, false})
	}
	for to := range int32(g.nodes) {
		if to == me {
			continue
		}
		if w := g.tagWeight(me, to); w > 0 {
			tagged = append(tagged, Edge{TaggedWith, int(to), w, false})
		}
		if g.sameCategory(me, to) {
			alike = append(alike, Edge{SameCategory, int(to), weightCategory, false})
		}
	}
	var all []Edge
	for _, edges := range [][]Edge{outward, inward, composed, tagged, alike} {
		slices.SortFunc(edges, heavier)
		all = append(all, edges[:min(len(edges), relatedOfType)]...)
	}
	slices.SortFunc(all, heavier)
	return all
}

func heavier(a, b Edge) int {
	return cmp.Or(
		cmp.Compare(b.Weight, a.Weight),
		cmp.Compare(a.To, b.To),
		cmp.Compare(a.Type, b.Type),
		cmp.Compare(truth(b.Outward), truth(a.Outward)),
	)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Subgraph returns the relations among some capabilities. It takes the 256 lowest
// ordinals and counts the rest in Cut; ordinals that do not exist are left out.
func (g *Graph) Subgraph(ordinals []int) Subgraph {
	var s Subgraph
	for _, o := range ordinals {
		if g.has(o) {
			s.Nodes = append(s.Nodes, o)
		}
	}
	slices.Sort(s.Nodes)
	s.Nodes = slices.Compact(s.Nodes)
	if n := len(s.Nodes); n > subgraphNodes {
		s.Nodes, s.Cut = s.Nodes[:subgraphNodes], n-subgraphNodes
	}
	for i, a := range s.Nodes {
		for _, b := range s.Nodes[i+1:] {
			s.Links = g.links(s.Links, int32(a), int32(b))
		}
	}
	return s
}

// links appends all that relates two capabilities.
func (g *Graph) links(links []Link, a, b int32) []Link {
	if contains(g.needs.of(a), b) {
		links = append(links, Link{int(a), int(b), DependsOn, weightDepends})
	}
	if contains(g.needs.of(b), a) {
		links = append(links, Link{int(b), int(a), DependsOn, weightDepends})
	}
	if g.composed(a, b) {
		links = append(links, Link{int(a), int(b), ComposedWith, weightComposed})
	}
	if w := g.tagWeight(a, b); w > 0 {
		links = append(links, Link{int(a), int(b), TaggedWith, w})
	}
	if g.sameCategory(a, b) {
		links = append(links, Link{int(a), int(b), SameCategory, weightCategory})
	}
	return links
}

// depends reports whether one of the two needs the other.
func (g *Graph) depends(a, b int32) bool {
	return contains(g.needs.of(a), b) || contains(g.needs.of(b), a)
}

func (g *Graph) composed(a, b int32) bool { return shared(g.groups.of(a), g.groups.of(b), 1) > 0 }

func (g *Graph) tagWeight(a, b int32) float64 {
	if g.tagBits == nil || g.tagBits[a]&g.tagBits[b] == 0 {
		return 0
	}
	if n := shared(g.tags.of(a), g.tags.of(b), maxTagsOf); n >= minSharedTags {
		return weightTag * float64(n)
	}
	return 0
}

func (g *Graph) sameCategory(a, b int32) bool {
	return g.category[a] >= 0 && g.category[a] == g.category[b]
}

// companions appends those that share a preset with one, by ordinal, to an
// empty list; it looks at the first members of each preset only, as many as
// limit says.
func (g *Graph) companions(out []int32, me int32, limit int) []int32 {
	for _, p := range g.groups.of(me) {
		members := g.preset.of(p)
		for _, to := range members[:min(len(members), limit)] {
			if to != me {
				out = append(out, to)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// contains is a search that suits the few values that most lists have.
func contains(sorted []int32, v int32) bool {
	if len(sorted) > 16 {
		_, ok := slices.BinarySearch(sorted, v)
		return ok
	}
	return slices.Contains(sorted, v)
}

// shared counts what two sorted lists have in common, up to enough.
func shared(a, b []int32, enough int) int {
	n := 0
	for len(a) > 0 && len(b) > 0 && n < enough {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}
