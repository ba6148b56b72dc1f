package eval

import (
	"math"
	"slices"
)

// A PerQuery is how one query was answered. Scores are 0–100.
type PerQuery struct {
	ID        string   `json:"id"`
	Query     string   `json:"query"`
	Gold      []string `json:"gold"`
	Hits      []Ranked `json:"hits"`      // the ranking, whatever the floor
	Abstained bool     `json:"abstained"` // nothing was shown
	Tokens    int      `json:"tokens"`
	Micros    float64  `json:"us"` // the best of its runs

	// The measures of the ranking, 0 where the finder abstained. They mean
	// nothing for a query without gold.
	NDCG5    float64 `json:"ndcg@5"`
	Recall1  float64 `json:"recall@1"`
	Recall5  float64 `json:"recall@5"`
	Recall10 float64 `json:"recall@10"`
	MRR      float64 `json:"mrr"`

	// The same, had there been no floor.
	NDCG5BeforeFloor   float64 `json:"ndcg@5_before_floor"`
	Recall5BeforeFloor float64 `json:"recall@5_before_floor"`

	// RecallShown is the share of the gold among what was shown.
	RecallShown float64 `json:"recall_shown"`
}

// Answerable reports whether there is anything to find.
func (p PerQuery) Answerable() bool { return len(p.Gold) > 0 }

// judge compares an answer with the gold.
func judge(q Query, a Answer) PerQuery {
	p := PerQuery{
		ID: q.ID, Query: q.Text, Gold: distinct(q.Gold), Hits: a.Hits[:min(depth, len(a.Hits))],
		Abstained: a.Abstained, Tokens: a.Tokens,
	}
	if p.Hits == nil {
		p.Hits = []Ranked{}
	}
	p.Abstained = p.Abstained || len(p.Hits) == 0
	if !p.Answerable() {
		return p
	}
	for _, id := range p.Gold {
		if slices.Contains(a.Shown, id) {
			p.RecallShown += 100 / float64(len(p.Gold))
		}
	}
	found := places(p.Hits, p.Gold)
	p.NDCG5BeforeFloor = 100 * ndcg(found, len(p.Gold), 5)
	p.Recall5BeforeFloor = 100 * recall(found, len(p.Gold), 5)
	if p.Abstained {
		return p
	}
	p.NDCG5, p.Recall5 = p.NDCG5BeforeFloor, p.Recall5BeforeFloor
	p.Recall1 = 100 * recall(found, len(p.Gold), 1)
	p.Recall10 = 100 * recall(found, len(p.Gold), 10)
	if len(found) > 0 {
		p.MRR = 100 / float64(found[0]+1)
	}
	return p
}

// places returns where gold stands among the hits, from 0. A hit that comes
// twice counts at its first place.
func places(hits []Ranked, gold []string) []int {
	var out []int
	for i, h := range hits {
		again := slices.ContainsFunc(hits[:i], func(earlier Ranked) bool { return earlier.ID == h.ID })
		if !again && slices.Contains(gold, h.ID) {
			out = append(out, i)
		}
	}
	return out
}

// ndcg is the discounted gain of the gold at the given places within the first
// k, as a share of the most that could be had.
func ndcg(found []int, gold, k int) float64 {
	var got, ideal float64
	for _, i := range found {
		if i < k {
			got += discount(i)
		}
	}
	for i := range min(k, gold) {
		ideal += discount(i)
	}
	return got / ideal
}

func discount(place int) float64 { return 1 / math.Log2(float64(place)+2) }

// recall is the share of the gold that stands within the first k.
func recall(found []int, gold, k int) float64 {
	n := 0
	for _, i := range found {
		if i < k {
			n++
		}
	}
	return float64(n) / float64(gold)
}
