package eval

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// ranked makes hits of one-letter ids.
func ranked(ids string) []Ranked {
	var out []Ranked
	for _, r := range ids {
		out = append(out, Ranked{ID: string(r)})
	}
	return out
}

func letters(s string) []string {
	var out []string
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

// TestT02MeasuresByHand checks every measure against a calculation on paper.
// Discounts: 1, 1/log2(3) = .6309, 1/2, 1/log2(5) = .4307, 1/log2(6) = .3869.
func TestT02MeasuresByHand(t *testing.T) {
	tests := []struct {
		hits, gold                 string
		ndcg5, r1, r5, r10, mrr100 float64
	}{
		{"abc", "a", 100, 100, 100, 100, 100},
		{"abc", "b", 63.093, 0, 100, 100, 50},
		{"abcde", "e", 38.685, 0, 100, 100, 20},
		{"abcdef", "f", 0, 0, 0, 100, 16.667},
		{"abcdefghij", "j", 0, 0, 0, 100, 10},
		{"abcdefghijk", "k", 0, 0, 0, 0, 0}, // the eleventh is not looked at
		{"abc", "x", 0, 0, 0, 0, 0},
		{"", "x", 0, 0, 0, 0, 0},
		{"abc", "ab", 100, 50, 100, 100, 100},
		{"abc", "ba", 100, 50, 100, 100, 100},                    // gold has no order
		{"abc", "ac", 91.972, 50, 100, 100, 100},                 // (1+.5)/(1+.6309)
		{"xab", "ab", 69.343, 0, 100, 100, 50},                   // (.6309+.5)/1.6309
		{"abcdefghij", "abcdefg", 100, 14.286, 71.429, 100, 100}, // the ideal has five
		{"aab", "ab", 91.972, 50, 100, 100, 100},                 // the second a is no second find
		{"ab", "aab", 100, 50, 100, 100, 100},                    // nor is gold said twice two things
	}
	for _, tt := range tests {
		p := judge(Query{Gold: letters(tt.gold)}, Answer{Hits: ranked(tt.hits)})
		got := fmt.Sprintf("%.3f %.3f %.3f %.3f %.3f", p.NDCG5, p.Recall1, p.Recall5, p.Recall10, p.MRR)
		want := fmt.Sprintf("%.3f %.3f %.3f %.3f %.3f", tt.ndcg5, tt.r1, tt.r5, tt.r10, tt.mrr100)
		if got != want {
			t.Errorf("hits %q for gold %q = %s, want %s", tt.hits, tt.gold, got, want)
		}
	}
}

func TestAbstainedScoresNothing(t *testing.T) {
	p := judge(Query{Gold: []string{"a"}}, Answer{Hits: ranked("ab"), Abstained: true})
	if p.NDCG5 != 0 || p.Recall1 != 0 || p.Recall5 != 0 || p.Recall10 != 0 || p.MRR != 0 {
		t.Errorf("an abstained query = %+v, want no score", p)
	}
	if p.NDCG5BeforeFloor != 100 || p.Recall5BeforeFloor != 100 {
		t.Errorf("before the floor it has %v and %v, want 100 and 100", p.NDCG5BeforeFloor, p.Recall5BeforeFloor)
	}
	if p := judge(Query{Gold: []string{"a"}}, Answer{}); !p.Abstained || p.Hits == nil {
		t.Errorf("an answer without hits = %+v, want abstained, and an empty list", p)
	}
}

// TestMeasureProperties: measures stay within 0–100 and grow with k; what is
// not gold may change places, and so may two golds; moving gold up never costs.
func TestMeasureProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[a-h]`)
		gold := rapid.SliceOfNDistinct(id, 1, 8, rapid.ID[string]).Draw(t, "gold")
		ids := rapid.SliceOfN(id, 0, 12).Draw(t, "hits")
		hits := make([]Ranked, len(ids))
		for i, s := range ids {
			hits[i].ID = s
		}
		p := judge(Query{Gold: gold}, Answer{Hits: hits})
		for _, v := range []float64{p.NDCG5, p.Recall1, p.Recall5, p.Recall10, p.MRR} {
			if math.IsNaN(v) || v < 0 || v > 100+1e-9 {
				t.Fatalf("measures %+v: outside 0–100", p)
			}
		}
		if p.Recall1 > p.Recall5 || p.Recall5 > p.Recall10 {
			t.Fatalf("recall %v, %v, %v does not grow", p.Recall1, p.Recall5, p.Recall10)
		}
		if (p.Recall5 > 0) != (p.NDCG5 > 0) {
			t.Fatalf("recall@5 %v but ndcg@5 %v", p.Recall5, p.NDCG5)
		}
		hits = hits[:min(len(hits), depth)]
		if len(hits) < 2 || len(distinct(ids[:len(hits)])) < len(hits) {
			return
		}
		i := rapid.IntRange(0, len(hits)-2).Draw(t, "i")
		before, after := p, append([]Ranked(nil), hits...)
		after[i], after[i+1] = after[i+1], after[i]
		p = judge(Query{Gold: gold}, Answer{Hits: after})
		isGold := func(r Ranked) bool { return len(places([]Ranked{r}, gold)) > 0 }
		switch first, second := isGold(hits[i]), isGold(hits[i+1]); {
		case first == second:
			if p.NDCG5 != before.NDCG5 || p.Recall5 != before.Recall5 || p.MRR != before.MRR {
				t.Fatalf("swapping equals at %d changed %+v to %+v", i, before, p)
			}
		case second:
			if p.NDCG5 < before.NDCG5 || p.Recall5 < before.Recall5 || p.MRR < before.MRR {
				t.Fatalf("moving gold up from %d changed %+v to %+v", i+1, before, p)
			}
		}
	})
}

func TestPercentile(t *testing.T) {
	tests := []struct {
		values []int
		p      int
		want   int
	}{
		{[]int{7}, 50, 7},
		{[]int{7}, 99, 7},
		{[]int{2, 1}, 50, 1},
		{[]int{3, 1, 2}, 50, 2},
		{[]int{4, 1, 3, 2}, 50, 2},
		{[]int{4, 1, 3, 2}, 99, 4},
		{[]int{4, 1, 3, 2}, 100, 4},
	}
	for _, tt := range tests {
		if got := percentile(tt.values, tt.p); got != tt.want {
			t.Errorf("percentile(%v, %d) = %v, want %v", tt.values, tt.p, got, tt.want)
		}
	}
	hundred := make([]int, 200)
	for i := range hundred {
		hundred[i] = i + 1
	}
	if got := percentile(hundred, 99); got != 198 {
		t.Errorf("percentile(1…200, 99) = %d, want 198", got)
	}
}
