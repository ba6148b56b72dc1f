package graph

import (
	"cmp"
	"slices"
)

// What keeps a drawing readable: how many relations by tags one capability is
// drawn with at least, and up to which size all pairs of a group are drawn.
const (
	linksByTags = 3
	wholeGroup  = 8
)

// WeightCategory is what one kind and category in common weighs.
const WeightCategory = weightCategory

// tagSteps bounds the work of comparing tags. The rarest come first: a tag that
// thousands share says little about any two of them.
const tagSteps = 40_000_000

// Links returns relations of all capabilities, for a drawing: every dependency;
// of a preset all pairs, or where it is large enough of them to hold it
// together; and for each capability the three with which it shares most tags.
// They come in that order, those by tags the heaviest first. Each pair is there
// once for each type. cut counts the relations that were left out, so far as
// tags were compared.
//
// Like [Graph.Related] it does not know who may see what.
func (g *Graph) Links() (links []Link, cut int) {
	for from := range int32(g.nodes) {
		for _, to := range g.needs.of(from) {
			links = append(links, Link{int(from), int(to), DependsOn, weightDepends})
		}
	}
	composed, more := g.composedLinks()
	links, cut = append(links, composed...), cut+more
	tagged, more := g.taggedLinks()
	return append(links, tagged...), cut + more
}

// pairing is two ordinals, the lower first.
type pairing struct{ a, b int32 }

func pairOf(a, b int32) pairing { return pairing{min(a, b), max(a, b)} }

// Knit joins the members of a group for a drawing: all pairs of a small one;
// of a larger one each with the next and with one far from it, so that they
// stay together. It returns how many pairs were left out.
func Knit(members []int32, join func(a, b int32)) (cut int) {
	n := len(members)
	if n <= wholeGroup {
		for i, a := range members {
			for _, b := range members[i+1:] {
				join(a, b)
			}
		}
		return 0
	}
	far := n/3 + 1 // of more than eight that is neither the next nor the one before
	for i, a := range members {
		join(a, members[(i+1)%n])
		join(a, members[(i+far)%n])
	}
	return n*(n-1)/2 - 2*n
}

func (g *Graph) composedLinks() (links []Link, cut int) {
	if g.preset.start == nil {
		return nil, 0
	}
	drawn := map[pairing]bool{}
	for p := range int32(len(g.preset.start) - 1) {
		cut += Knit(g.preset.of(p), func(a, b int32) {
			if pair := pairOf(a, b); !drawn[pair] {
				drawn[pair] = true
				links = append(links, Link{int(pair.a), int(pair.b), ComposedWith, weightComposed})
			}
		})
	}
	return links, cut
}

func (g *Graph) taggedLinks() (links []Link, cut int) {
	holders := g.tagHolders()
	drawn := map[pairing]bool{}
	shared := make([]uint8, g.nodes) // with the one that is looked at
	var met []int32
	pairs := 0
	for me := range int32(g.nodes) {
		for _, tag := range g.tags.of(me) {
			for _, other := range holders[tag] {
				if shared[other]++; shared[other] == 1 {
					met = append(met, other)
				}
			}
		}
		best := met[:0]
		for _, other := range met {
			if other != me && shared[other] >= minSharedTags {
				best = append(best, other)
				if other > me {
					pairs++
				}
				continue
			}
			shared[other] = 0
		}
		slices.SortFunc(best, func(a, b int32) int {
			return cmp.Or(int(shared[b])-int(shared[a]), int(away(a, me)-away(b, me)), int(a-b))
		})
		for i, other := range best {
			shared[other] = 0
			if pair := pairOf(me, other); i < linksByTags && !drawn[pair] {
				drawn[pair] = true
				links = append(links, Link{int(pair.a), int(pair.b), TaggedWith, g.tagWeight(me, other)})
			}
		}
		met = met[:0]
	}
	slices.SortFunc(links, func(x, y Link) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), x.From-y.From, x.To-y.To)
	})
	return links, pairs - len(links)
}

func away(a, b int32) int32 { return max(a-b, b-a) }

// tagHolders returns who has each tag, without the tags that too many have.
func (g *Graph) tagHolders() [][]int32 {
	count := 0
	for _, tag := range g.tags.all {
		count = max(count, int(tag)+1)
	}
	holders := make([][]int32, count)
	for i := range int32(g.nodes) {
		for _, tag := range g.tags.of(i) {
			holders[tag] = append(holders[tag], i)
		}
	}
	rarest := make([]int32, count)
	for i := range rarest {
		rarest[i] = int32(i)
	}
	slices.SortFunc(rarest, func(a, b int32) int { return cmp.Or(len(holders[a])-len(holders[b]), int(a-b)) })
	left := tagSteps
	for _, tag := range rarest {
		if left -= len(holders[tag]) * len(holders[tag]); left < 0 {
			holders[tag] = nil
		}
	}
	return holders
}
