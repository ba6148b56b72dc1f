package discover

import (
	"fmt"

	"ken/capability"
)

// MaxNumber is the largest whole number that an [Override] may have.
const MaxNumber = 1_000_000

// Check returns an error that names the first field outside its range, by its
// JSON name.
func (o Override) Check() error {
	for _, f := range []struct {
		name string
		n    *int
	}{
		{"tier1TopK", o.TopK}, {"tier2TopK", o.FullK}, {"stickyTopK", o.StickyK},
		{"tier0TokenBudget", o.MapTokens}, {"tier1TokenBudget", o.BriefTokens}, {"tier2TokenBudget", o.FullTokens},
		{"maxTokens", o.CardTokens}, {"totalTokenBudget", o.TotalTokens},
	} {
		if f.n != nil && (*f.n < 0 || *f.n > MaxNumber) {
			return fmt.Errorf("%s is %d; it is a whole number within 0 to %d", f.name, *f.n, MaxNumber)
		}
	}
	for _, f := range []struct {
		name string
		x    *float64
		most float64
	}{
		{"tier1MinRelevance", o.MinRelevance, 1}, {"tier1TailRelevance", o.TailRelevance, 1}, {"tier2MinRelevance", o.FullRelevance, 1},
		{"graphBoostFactor", o.Boost, 1}, {"learnedWeight", o.Learned, 10},
	} {
		if f.x != nil && !(*f.x >= 0 && *f.x <= f.most) { // not a number is outside too
			return fmt.Errorf("%s is %g; it is a number within 0 to %g", f.name, *f.x, f.most)
		}
	}
	return nil
}

// Numbers returns the configuration as an override that changes nothing: every
// field is set.
func (c Config) Numbers() Override {
	asLearned := 1.0
	return Override{
		TopK: &c.TopK, FullK: &c.FullK, StickyK: &c.StickyK,
		MinRelevance: &c.MinRelevance, TailRelevance: &c.TailRelevance, FullRelevance: &c.FullRelevance,
		MapTokens: &c.Budget.Map, BriefTokens: &c.Budget.Briefs, FullTokens: &c.Budget.Fulls,
		CardTokens: &c.Budget.Cards, TotalTokens: &c.Budget.Total,
		Graph: &c.Graph.Use, Boost: &c.Graph.Boost, Learned: &asLearned,
	}
}

// Over returns o, with other's fields where o has none.
func (o Override) Over(other Override) Override {
	or(&o.TopK, other.TopK)
	or(&o.FullK, other.FullK)
	or(&o.StickyK, other.StickyK)
	or(&o.MinRelevance, other.MinRelevance)
	or(&o.TailRelevance, other.TailRelevance)
	or(&o.FullRelevance, other.FullRelevance)
	or(&o.MapTokens, other.MapTokens)
	or(&o.BriefTokens, other.BriefTokens)
	or(&o.FullTokens, other.FullTokens)
	or(&o.CardTokens, other.CardTokens)
	or(&o.TotalTokens, other.TotalTokens)
	or(&o.Graph, other.Graph)
	or(&o.Boost, other.Boost)
	or(&o.Learned, other.Learned)
	return o
}

func or[T any](to **T, other *T) {
	if *to == nil {
		*to = other
	}
}

// weighed returns what was learned with another weight. The map it is given
// stays as it is.
func weighed(priors map[capability.ID]float64, weight *float64) map[capability.ID]float64 {
	if weight == nil || *weight == 1 || len(priors) == 0 {
		return priors
	}
	out := make(map[capability.ID]float64, len(priors))
	for id, p := range priors {
		out[id] = p * *weight
	}
	return out
}
