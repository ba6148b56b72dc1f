package eval

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"ken/internal/coldsort"
)

const (
	resamples = 2000 // of the bootstrap
	mostShown = 10   // changed queries that a comparison names
)

// A Comparison says how run B differs from run A on the queries that both
// have. Differences are B − A; an interval that does not hold 0 is a
// difference that other queries of the same sort would show as well.
type Comparison struct {
	N        int `json:"n"`        // answerable queries in both runs
	Paired   int `json:"paired"`   // all queries in both
	Unpaired int `json:"unpaired"` // queries in one of them only

	NDCG5   Difference `json:"ndcg@5"`
	Recall5 Difference `json:"recall@5"`
	Tokens  Difference `json:"tokens"`
	Latency Difference `json:"latency_us"`

	// Changed are the ten queries whose ranking gained or lost most.
	Changed []Changed `json:"changed"`
}

// A Difference is that of one measure. B wins a query where its value is the
// better one: the higher score, the fewer tokens, the shorter time.
type Difference struct {
	A    Mean `json:"a"`
	B    Mean `json:"b"`
	Diff Mean `json:"diff"`
	Low  Mean `json:"low"` // the 95% interval of Diff, by paired bootstrap
	High Mean `json:"high"`

	Wins   int `json:"wins"`
	Losses int `json:"losses"`
	Ties   int `json:"ties"`
}

// Real reports whether the interval leaves out 0.
func (d Difference) Real() bool { return d.Low > 0 || d.High < 0 }

// A Changed is a query that the two runs answer differently well.
type Changed struct {
	ID      string    `json:"id"`
	Query   string    `json:"query"`
	Gold    []string  `json:"gold"`
	NDCG5   [2]Mean   `json:"ndcg@5"` // of A, of B
	Recall5 [2]Mean   `json:"recall@5"`
	First   [2]string `json:"first"` // the best hit of each; empty where nothing was shown
}

// Compare pairs two runs by the queries' ids and texts. The same runs give the
// same comparison: the bootstrap draws from a fixed seed.
func Compare(a, b []PerQuery) Comparison {
	all := pairs(a, b)
	answerable := slices.DeleteFunc(slices.Clone(all), func(p pair) bool { return !p.a.Answerable() })
	return Comparison{
		N: len(answerable), Paired: len(all), Unpaired: len(a) + len(b) - 2*len(all),
		NDCG5:   difference(answerable, func(p PerQuery) float64 { return p.NDCG5 }, 1),
		Recall5: difference(answerable, func(p PerQuery) float64 { return p.Recall5 }, 1),
		Tokens:  difference(all, func(p PerQuery) float64 { return float64(p.Tokens) }, -1),
		Latency: difference(all, func(p PerQuery) float64 { return p.Micros }, -1),
		Changed: changed(answerable),
	}
}

// A pair is one query in both runs.
type pair struct{ a, b PerQuery }

func pairs(a, b []PerQuery) []pair {
	type key struct{ id, query string }
	waiting := map[key][]int{}
	for i, p := range b {
		k := key{p.ID, p.Query}
		waiting[k] = append(waiting[k], i)
	}
	var out []pair
	for _, p := range a {
		k := key{p.ID, p.Query}
		if at := waiting[k]; len(at) > 0 {
			out = append(out, pair{p, b[at[0]]})
			waiting[k] = at[1:]
		}
	}
	return out
}

// difference compares one measure; better is 1 where more of it is better and
// −1 where less is.
func difference(list []pair, value func(PerQuery) float64, better float64) Difference {
	d := Difference{A: undefined(), B: undefined(), Diff: undefined(), Low: undefined(), High: undefined()}
	if len(list) == 0 {
		return d
	}
	diffs := make([]float64, len(list))
	var sumA, sumB float64
	for i, p := range list {
		va, vb := value(p.a), value(p.b)
		sumA, sumB, diffs[i] = sumA+va, sumB+vb, vb-va
		switch gain := better * diffs[i]; {
		case gain > 0:
			d.Wins++
		case gain < 0:
			d.Losses++
		default:
			d.Ties++
		}
	}
	n := float64(len(list))
	d.A, d.B, d.Diff = Mean(sumA/n), Mean(sumB/n), Mean((sumB-sumA)/n)
	d.Low, d.High = interval(diffs)
	return d
}

// interval draws as many queries as there are, with repetition, again and
// again, and returns the range that 95% of the mean differences lie in.
func interval(diffs []float64) (low, high Mean) {
	random := rand.New(rand.NewPCG(2026, 11))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range diffs {
			sum += diffs[random.IntN(len(diffs))]
		}
		means[i] = sum / float64(len(diffs))
	}
	slices.Sort(means)
	return Mean(means[resamples/40-1]), Mean(means[resamples-resamples/40])
}

// changed returns the queries with the greatest difference, greatest first.
func changed(list []pair) []Changed {
	moved := slices.DeleteFunc(slices.Clone(list), func(p pair) bool {
		return p.a.NDCG5 == p.b.NDCG5 && p.a.Recall5 == p.b.Recall5
	})
	coldsort.Stable(moved, func(p, q pair) int {
		return cmp.Or(
			cmp.Compare(math.Abs(q.b.NDCG5-q.a.NDCG5), math.Abs(p.b.NDCG5-p.a.NDCG5)),
			cmp.Compare(math.Abs(q.b.Recall5-q.a.Recall5), math.Abs(p.b.Recall5-p.a.Recall5)),
		)
	})
	out := []Changed{}
	for _, p := range moved[:min(mostShown, len(moved))] {
		out = append(out, Changed{
			ID: p.a.ID, Query: p.a.Query, Gold: p.a.Gold,
			NDCG5:   [2]Mean{Mean(p.a.NDCG5), Mean(p.b.NDCG5)},
			Recall5: [2]Mean{Mean(p.a.Recall5), Mean(p.b.Recall5)},
			First:   [2]string{first(p.a), first(p.b)},
		})
	}
	return out
}

func first(p PerQuery) string {
	if p.Abstained {
		return ""
	}
	return p.Hits[0].ID
}
