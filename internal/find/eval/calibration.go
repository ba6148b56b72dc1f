package eval

import (
	"math"
	"slices"
)

// bins is how many equal parts the scores are put into.
const bins = 10

// A Bin is what became of the best hits whose score lies in one tenth.
type Bin struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	N     int     `json:"n"`
	Score Mean    `json:"score"` // what the scores promised
	Right Mean    `json:"right"` // what share was gold
}

// A promise is a score and whether it was kept.
type promise struct {
	score float64
	right bool
}

// promises collects the scores of the first k hits of every answerable query,
// whatever the floor. It returns nil when any of them cannot be a probability.
func promises(each []PerQuery, k int) []promise {
	var out []promise
	for _, p := range each {
		if !p.Answerable() {
			continue
		}
		for _, h := range p.Hits[:min(k, len(p.Hits))] {
			if math.IsNaN(h.Score) || h.Score < 0 || h.Score > 1 {
				return nil
			}
			out = append(out, promise{h.Score, slices.Contains(p.Gold, h.ID)})
		}
	}
	return out
}

// reliability sorts promises into bins and returns the expected calibration
// error: how far, on average over the promises, a bin's share of gold lies
// from its mean score. Without promises it is undefined.
func reliability(list []promise) ([]Bin, Mean) {
	out := make([]Bin, bins)
	sums, right := [bins]float64{}, [bins]float64{}
	for _, p := range list {
		i := min(int(p.score*bins), bins-1) // a score of 1 belongs to the last
		out[i].N++
		sums[i] += p.score
		if p.right {
			right[i]++
		}
	}
	sum := 0.0
	for i := range out {
		b := &out[i]
		b.From, b.To = float64(i)/bins, float64(i+1)/bins
		b.Score, b.Right = undefined(), undefined()
		if b.N > 0 {
			b.Score, b.Right = Mean(sums[i]/float64(b.N)), Mean(right[i]/float64(b.N))
			sum += math.Abs(sums[i] - right[i])
		}
	}
	if len(list) == 0 {
		return out, undefined()
	}
	return out, Mean(sum / float64(len(list)))
}
