package eval

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"ken/capability"
	"ken/internal/coldsort"
)

// A Mean is a number taken over many. Over none it is not a number, which JSON
// writes as null.
type Mean float64

func undefined() Mean { return Mean(math.NaN()) }

// Defined reports whether there was anything to take the mean of.
func (m Mean) Defined() bool { return !math.IsNaN(float64(m)) && !math.IsInf(float64(m), 0) }

// MarshalJSON writes four digits after the point, which is more than any set
// of queries supports.
func (m Mean) MarshalJSON() ([]byte, error) {
	if !m.Defined() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(m)*1e4)/1e4, 'f', -1, 64), nil
}

// UnmarshalJSON reads it back.
func (m *Mean) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*m = undefined()
		return nil
	}
	return json.Unmarshal(b, (*float64)(m))
}

// A Report is what a run showed. Scores and rates are 0–100, calibration errors
// 0–1, times in microseconds unless they say otherwise.
type Report struct {
	N        int        `json:"n"` // answerable queries
	NDCG5    Mean       `json:"ndcg@5"`
	Recall1  Mean       `json:"recall@1"`
	Recall5  Mean       `json:"recall@5"`
	Recall10 Mean       `json:"recall@10"`
	MRR      Mean       `json:"mrr"`
	Abstain  Abstention `json:"abstain"`

	// CalibrationError is the expected calibration error, over ten bins, of
	// the best hit's score taken as the probability that it is gold, whether
	// or not it was shown. Queries without a hit promise nothing and are left
	// out; it is undefined when a score lies outside 0–1.
	CalibrationError Mean `json:"calibration_error"`

	P50 Mean `json:"p50_us"`
	P99 Mean `json:"p99_us"`

	// IndexMS and RSSMB are the caller's to fill: the time from opening the
	// program to its first answer, and the memory it holds afterwards in
	// millions of bytes.
	IndexMS Mean `json:"index_ms"`
	RSSMB   Mean `json:"rss_mb"`

	OutOfScope          int    `json:"oos_n"`
	NDCG5BeforeFloor    Mean   `json:"ndcg@5_before_floor"`
	Recall5BeforeFloor  Mean   `json:"recall@5_before_floor"`
	RecallShown         Mean   `json:"recall_shown"`          // of the gold, what was shown at all
	CalibrationErrorAll Mean   `json:"calibration_error_all"` // over the first five hits
	Reliability         []Bin  `json:"reliability"`
	Tokens              Tokens `json:"tokens"`
	Allocs              Mean   `json:"allocs"` // allocations for one query
	AllocBytes          Mean   `json:"alloc_bytes"`

	Problems []capability.Problem `json:"problems"`
	Each     []PerQuery           `json:"-"` // in the order of the queries
}

// An Abstention says how often nothing was shown.
type Abstention struct {
	OutOfScope Mean `json:"oos_rate"`      // of the queries that nothing fits: right
	InScope    Mean `json:"in_scope_rate"` // of the answerable ones: wrong
	Floor      Mean `json:"floor"`         // what a score must reach; the median where it differs
}

// Tokens says how much was shown, over all queries.
type Tokens struct {
	Median int `json:"median"`
	Max    int `json:"max"`
}

// summarize takes the means over all queries.
func summarize(each []PerQuery, answers []Answer) Report {
	var in, out []PerQuery
	for _, p := range each {
		if p.Answerable() {
			in = append(in, p)
		} else {
			out = append(out, p)
		}
	}
	r := Report{
		N: len(in), OutOfScope: len(out), Each: each, Problems: []capability.Problem{},
		NDCG5:    mean(in, func(p PerQuery) float64 { return p.NDCG5 }),
		Recall1:  mean(in, func(p PerQuery) float64 { return p.Recall1 }),
		Recall5:  mean(in, func(p PerQuery) float64 { return p.Recall5 }),
		Recall10: mean(in, func(p PerQuery) float64 { return p.Recall10 }),
		MRR:      mean(in, func(p PerQuery) float64 { return p.MRR }),

		NDCG5BeforeFloor:   mean(in, func(p PerQuery) float64 { return p.NDCG5BeforeFloor }),
		Recall5BeforeFloor: mean(in, func(p PerQuery) float64 { return p.Recall5BeforeFloor }),
		RecallShown:        mean(in, func(p PerQuery) float64 { return p.RecallShown }),

		Abstain: Abstention{OutOfScope: mean(out, silence), InScope: mean(in, silence)},
		IndexMS: undefined(), RSSMB: undefined(), Allocs: undefined(), AllocBytes: undefined(),
	}
	times, tokens, floors := make([]float64, len(each)), make([]int, len(each)), make([]float64, len(each))
	for i, p := range each {
		times[i], tokens[i], floors[i] = p.Micros, p.Tokens, answers[i].Floor
	}
	r.P50, r.P99, r.Abstain.Floor = undefined(), undefined(), undefined()
	if len(each) > 0 {
		r.P50, r.P99 = Mean(percentile(times, 50)), Mean(percentile(times, 99))
		r.Abstain.Floor = Mean(percentile(floors, 50))
		r.Tokens = Tokens{Median: percentile(tokens, 50), Max: slices.Max(tokens)}
	}
	r.Reliability, r.CalibrationError = reliability(promises(each, 1))
	_, r.CalibrationErrorAll = reliability(promises(each, 5))
	return r
}

// silence is 100 for a query that nothing was shown for.
func silence(p PerQuery) float64 {
	if p.Abstained {
		return 100
	}
	return 0
}

func mean(each []PerQuery, value func(PerQuery) float64) Mean {
	sum := 0.0
	for _, p := range each {
		sum += value(p)
	}
	return Mean(sum / float64(len(each)))
}

// percentile returns the smallest of the values, of which there is at least one,
// that p per cent of them do not exceed.
func percentile[T cmp.Ordered](values []T, p int) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (p*len(sorted)+99)/100-1)]
}

// Misses returns the n answerable queries that were answered worst, worst first.
func (r Report) Misses(n int) []PerQuery {
	out := slices.DeleteFunc(slices.Clone(r.Each), func(p PerQuery) bool {
		if !p.Answerable() {
			return p.Abstained // an answer to what nothing fits is a miss too
		}
		return p.NDCG5 >= 100
	})
	coldsort.Stable(out, func(a, b PerQuery) int {
		return cmp.Or(cmp.Compare(a.NDCG5, b.NDCG5), cmp.Compare(a.Recall10, b.Recall10))
	})
	return out[:min(n, len(out))]
}
