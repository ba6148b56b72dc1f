package graph

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// A Scored is a hit of a search: how probable it is, 0 to 1, that it fits.
type Scored struct {
	Ordinal int
	Score   float64
}

// A Config says how much the graph may do. The zero Config uses none of it.
type Config struct {
	// Use turns the graph on. Without it Rerank sorts, and leaves out what
	// must not be shown.
	Use bool

	// Boost is the seed's graphBoostFactor, 0 to 1; 0 raises nothing.
	Boost float64

	// Top is how many of the best hits take part: only they raise each other
	// and have things attached. It should be no less than the number that
	// will be shown. Zero means 10.
	Top int

	// MaxAttached is how many capabilities are attached to one hit at most;
	// zero means 8, less than zero none. The nearest come first, so who has
	// room for fewer takes the first ones.
	MaxAttached int

	// MaxHops is how far dependencies of dependencies are followed; zero
	// means 3. At most 64 capabilities are reached from one hit.
	MaxHops int

	// Literal does exactly what the second seed says: all four types of edges
	// raise scores, by as much as there are edges, even above 1; and what a hit
	// needs or is composed with joins the results with a score of its own, far
	// below. Nothing is attached. Top, MaxAttached and MaxHops do not matter.
	Literal bool
}

// Default returns the configuration that the measurements in eval_test.go speak
// for.
func Default() Config {
	return Config{Use: true, Boost: 0.15, Top: defaultTop, MaxAttached: defaultAttached, MaxHops: defaultHops}
}

const (
	defaultTop      = 10
	defaultAttached = 8
	defaultHops     = 3
)

// A Ranked is a result. The slices in it belong to the caller.
type Ranked struct {
	Ordinal int
	Score   float64 // Boost included
	Boost   float64 // how much of Score the graph gave
	Pulled  bool    // no hit of the search: a neighbour brought it in; with Literal only

	From     []Reason     // why Boost is not 0, or what brought it in
	Attached []Attachment // nearest first
}

// A Reason is an edge that raised a result, or brought it in.
type Reason struct {
	Type   EdgeType
	With   int // the ordinal at the other end
	Weight float64
}

// An Attachment is a capability that comes with a hit without being one.
type Attachment struct {
	Ordinal int
	Of      int      // what needs it: the hit, or an attachment of the hit
	Hops    int      // from the hit
	Type    EdgeType // DependsOn, or ComposedWith for what is often used along

	// Score is what the seed gives to such a neighbour: the score of what
	// needs it, times Boost, times the weight. It is told, not used: no
	// attachment is left out for it.
	Score float64
}

// maxBoost bounds what the graph may add. Among what is most uncertain, at 0.5,
// it is a fourth of this.
const maxBoost = 0.15

// maxCandidates is how many hits are compared pair by pair, and maxTied how
// many of equal score are: where more are equal, the query hardly tells them
// apart, and the others follow by ordinal.
const (
	maxCandidates = 50
	maxTied       = 16
)

// equalWithin tells rounding from a difference in score.
const equalWithin = 1e-9

// Rerank puts hits in order, raises those that belong to each other, and
// attaches what they need. The order of hits does not matter: the best first,
// equal ones by how much they relate to the other hits, then by ordinal. A hit
// named twice counts with its best score; scores are held within 0 and 1.
//
// keep says which ordinals may appear at all: what it refuses comes back
// neither as a hit nor as an attachment nor as a reason, and nothing is reached
// through it. A nil keep refuses everything. It is called with ordinals of the
// graph only.
//
// A hit is raised once, by its strongest edge of type DEPENDS_ON or
// COMPOSED_WITH to another of the Top hits: by min(0.15, Boost·weight) of
// score·(1−score). That is at most 0.0375 and never leads above 1; and as both
// ends are raised alike, what was below the one that needs it stays there. Tags
// and categories only decide between scores that are equal but for rounding.
//
// What a hit depends on is attached to it, nearest first, then by ordinal, and
// after that at most two of those it is composed with. What is itself among the
// Top hits is not attached. Being needed attaches nothing.
func (g *Graph) Rerank(hits []Scored, cfg Config, keep func(ordinal int) bool) []Ranked {
	if keep == nil || len(hits) == 0 {
		return nil
	}
	var room [64]candidate // on the stack, for the usual number of hits
	found := g.candidates(room[:0], hits, keep)
	cfg = cfg.filled()
	switch {
	case !cfg.Use:
		return plain(found)
	case cfg.Literal:
		return g.literal(found, cfg, keep)
	}
	top := found[:min(len(found), cfg.Top)]
	var edges [32]Reason // on the stack as well; what is kept is copied once
	reasons := slices.Clone(g.boost(edges[:0], top, cfg))
	slices.SortFunc(top, better) // the others are below still
	g.settleTies(found, cfg.Top)
	out := plain(found)
	for i, c := range found[:len(top)] {
		if c.reasons > 0 {
			out[i].From = reasons[c.firstReason : c.firstReason+c.reasons : c.firstReason+c.reasons]
		}
	}
	a := attacher{Graph: g, hits: found[:len(top)], cfg: cfg, keep: keep}
	a.attach(out[:len(top)])
	return out
}

// filled puts in the defaults and holds everything within its bounds.
func (c Config) filled() Config {
	c.Boost = unit(c.Boost)
	if c.Top <= 0 {
		c.Top = defaultTop
	}
	c.Top = min(c.Top, maxCandidates)
	switch {
	case c.MaxAttached == 0:
		c.MaxAttached = defaultAttached
	case c.MaxAttached < 0:
		c.MaxAttached = 0
	}
	if c.MaxHops <= 0 {
		c.MaxHops = defaultHops
	}
	return c
}

// unit clamps x to 0–1; NaN becomes 0.
func unit(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, 0), 1)
}

// A candidate is a hit on its way to a result.
type candidate struct {
	base    float64 // the score of the search
	score   float64 // and what the graph made of it
	related float64 // to the other hits; only where it decides
	ordinal int32

	firstReason, reasons uint16 // at most 50 for each of 50
}

func better(a, b candidate) int {
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	case a.base > b.base:
		return -1
	case a.base < b.base:
		return 1
	}
	return cmp.Compare(a.ordinal, b.ordinal)
}

// candidates takes the hits that may appear, each once, best first.
func (g *Graph) candidates(found []candidate, hits []Scored, keep func(int) bool) []candidate {
	for _, h := range hits {
		if g.has(h.Ordinal) && keep(h.Ordinal) {
			s := unit(h.Score)
			found = append(found, candidate{ordinal: int32(h.Ordinal), base: s, score: s})
		}
	}
	if !slices.IsSortedFunc(found, better) {
		slices.SortFunc(found, better)
	}
	return onlyFirst(found)
}

// onlyFirst drops a candidate whose ordinal came before.
func onlyFirst(found []candidate) []candidate {
	var room [256]int32 // ordinals plus one, so that 0 is a free place
	seen := room[:]
	if len(found) > len(room)/2 {
		seen = make([]int32, 1<<(1+bits.Len(uint(len(found)))))
	}
	kept := found[:0]
next:
	for _, c := range found {
		for at := uint32(c.ordinal) * 0x9E3779B1; ; at++ {
			switch place := &seen[at%uint32(len(seen))]; *place {
			case c.ordinal + 1:
				continue next
			case 0:
				*place = c.ordinal + 1
				kept = append(kept, c)
				continue next
			}
		}
	}
	return kept
}

func plain(found []candidate) []Ranked {
	out := make([]Ranked, len(found))
	for i, c := range found {
		out[i] = Ranked{Ordinal: int(c.ordinal), Score: c.score, Boost: c.score - c.base}
	}
	return out
}

// boost raises candidates by their strongest stored edge to another of them,
// and appends the edges that did it.
func (g *Graph) boost(reasons []Reason, top []candidate, cfg Config) []Reason {
	if len(g.needs.all)+g.pairs == 0 || cfg.Boost == 0 {
		return nil
	}
	for i := range top {
		c := &top[i]
		first, strongest := len(reasons), 0.0
		needs, users, groups := g.needs.of(c.ordinal), g.users.of(c.ordinal), g.groups.of(c.ordinal)
		if len(needs)+len(users)+len(groups) == 0 {
			continue
		}
		for j := range top {
			other := top[j].ordinal
			switch {
			case i == j:
			case contains(needs, other) || contains(users, other):
				strongest = weightDepends
				reasons = append(reasons, Reason{DependsOn, int(other), weightDepends})
			case len(groups) > 0 && shared(groups, g.groups.of(other), 1) > 0:
				strongest = max(strongest, weightComposed)
				reasons = append(reasons, Reason{ComposedWith, int(other), weightComposed})
			}
		}
		c.firstReason, c.reasons = uint16(first), uint16(len(reasons)-first)
		c.score += min(maxBoost, cfg.Boost*strongest) * c.base * (1 - c.base)
	}
	return reasons
}

// settleTies orders equal scores by how much each relates to the other hits by
// tags and category, as far as anyone will look.
func (g *Graph) settleTies(found []candidate, top int) {
	for i := 0; i < min(len(found), top); {
		j := i + 1
		for j < len(found) && found[i].score-found[j].score <= equalWithin {
			j++
		}
		if run := found[i:min(j, i+maxTied)]; len(run) > 1 {
			for k := range run {
				run[k].related = g.relatedness(run[k].ordinal, found[:min(len(found), maxCandidates)])
			}
			slices.SortStableFunc(run, func(a, b candidate) int { return cmp.Compare(b.related, a.related) })
		}
		i = j
	}
}

// relatedness adds up the edges by tags and category to the best hits, each
// counted as much as its hit is worth.
func (g *Graph) relatedness(me int32, found []candidate) float64 {
	sum := 0.0
	for _, c := range found {
		if c.ordinal == me {
			continue
		}
		w := g.tagWeight(me, c.ordinal)
		if g.sameCategory(me, c.ordinal) {
			w += weightCategory
		}
		sum += w * c.base
	}
	return sum
}
