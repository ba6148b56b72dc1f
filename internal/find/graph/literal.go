package graph

import "slices"

// maxPulled is how many neighbours of one hit and type can join the results, and
// only those of the best 50 hits do. The seed names no bound; one preset of
// everything must not become a result of everything.
const maxPulled = 64

// literal is the second seed's algorithm, word for word:
//
//  1. For each result, look up 1-hop graph neighbors.
//  2. If a neighbor is also in results, mutual boost: score += graphBoostFactor * edgeWeight.
//  3. If a neighbor is not in results but has DEPENDS_ON or COMPOSED_WITH, pull
//     it in: score = parentScore * graphBoostFactor * edgeWeight.
//  4. Re-sort by score descending.
//
// Where it does not say: two results raise each other once for each type of
// edge; DEPENDS_ON pulls in along its arrow only; parentScore is the score of
// the search; and what several results pull in has the highest of their scores.
func (g *Graph) literal(found []candidate, cfg Config, keep func(int) bool) []Ranked {
	p := puller{g: g, cfg: cfg, keep: keep, out: plain(found), at: make(map[int32]int, len(found))}
	for i, c := range found {
		p.at[c.ordinal] = i
	}
	near := found[:min(len(found), maxCandidates)]
	for i := range near {
		for j := range i {
			g.raiseBoth(&p.out[i], &p.out[j], cfg)
		}
	}
	for _, c := range near {
		p.neighbours(c)
	}
	out := p.out
	slices.SortFunc(out, func(a, b Ranked) int {
		return better(
			candidate{ordinal: int32(a.Ordinal), score: a.Score, base: a.Score - a.Boost},
			candidate{ordinal: int32(b.Ordinal), score: b.Score, base: b.Score - b.Boost})
	})
	return out
}

func (g *Graph) raiseBoth(a, b *Ranked, cfg Config) {
	x, y := int32(a.Ordinal), int32(b.Ordinal)
	raise := func(kind EdgeType, w float64) {
		for _, end := range [2]struct{ r, other *Ranked }{{a, b}, {b, a}} {
			end.r.Score += cfg.Boost * w
			end.r.Boost += cfg.Boost * w
			end.r.From = append(end.r.From, Reason{kind, end.other.Ordinal, w})
		}
	}
	if g.depends(x, y) {
		raise(DependsOn, weightDepends)
	}
	if g.composed(x, y) {
		raise(ComposedWith, weightComposed)
	}
	if w := g.tagWeight(x, y); w > 0 {
		raise(TaggedWith, w)
	}
	if g.sameCategory(x, y) {
		raise(SameCategory, weightCategory)
	}
}

// A puller adds neighbours to results.
type puller struct {
	g    *Graph
	cfg  Config
	keep func(int) bool
	out  []Ranked
	at   map[int32]int // where in out
}

func (p *puller) neighbours(of candidate) {
	needs := p.g.needs.of(of.ordinal)
	for _, to := range needs[:min(len(needs), maxPulled)] {
		p.pull(to, of, DependsOn, weightDepends)
	}
	companions := p.g.companions(nil, of.ordinal, maxPulled)
	for _, to := range companions[:min(len(companions), maxPulled)] {
		p.pull(to, of, ComposedWith, weightComposed)
	}
}

func (p *puller) pull(to int32, of candidate, kind EdgeType, w float64) {
	at, there := p.at[to]
	if !there {
		if !p.keep(int(to)) {
			return
		}
		at = len(p.out)
		p.at[to] = at
		p.out = append(p.out, Ranked{Ordinal: int(to), Pulled: true})
	}
	r := &p.out[at]
	if !r.Pulled { // a hit, which was raised already
		return
	}
	r.Score = max(r.Score, of.base*p.cfg.Boost*w)
	r.From = append(r.From, Reason{kind, int(of.ordinal), w})
}
