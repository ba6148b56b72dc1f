package eval

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

func scored(id string, ndcg, recall float64, tokens int, us float64) PerQuery {
	return PerQuery{
		ID: id, Gold: []string{"g"}, Hits: []Ranked{{ID: "of " + id}},
		NDCG5: ndcg, Recall5: recall, Tokens: tokens, Micros: us,
	}
}

func TestCompareByHand(t *testing.T) {
	a := []PerQuery{scored("same", 100, 100, 10, 5), scored("up", 0, 0, 20, 5), scored("down", 100, 100, 10, 5), scored("only a", 1, 1, 1, 1)}
	b := []PerQuery{scored("down", 50, 100, 10, 4), scored("up", 100, 100, 10, 7), scored("same", 100, 100, 10, 5), scored("only b", 1, 1, 1, 1)}
	out := PerQuery{ID: "out of scope", Tokens: 40, Micros: 5}
	c := Compare(append(a, out), append(b, out))
	if c.N != 3 || c.Paired != 4 || c.Unpaired != 2 {
		t.Errorf("n %d, paired %d, unpaired %d, want 3, 4, 2", c.N, c.Paired, c.Unpaired)
	}
	check := func(name string, d Difference, want string) {
		t.Helper()
		if got := fmt.Sprintf("%.2f %.2f %.2f, %d %d %d", d.A, d.B, d.Diff, d.Wins, d.Losses, d.Ties); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	check("ndcg@5", c.NDCG5, "66.67 83.33 16.67, 1 1 1")
	check("recall@5", c.Recall5, "66.67 100.00 33.33, 1 0 2")
	check("tokens", c.Tokens, "20.00 17.50 -2.50, 1 0 3") // fewer is better
	check("latency", c.Latency, "5.00 5.25 0.25, 1 1 2")
	if len(c.Changed) != 2 || c.Changed[0].ID != "up" || c.Changed[1].ID != "down" || c.Changed[0].First != [2]string{"of up", "of up"} {
		t.Errorf("changed = %+v, want up, then down", c.Changed)
	}
}

func TestCompareInterval(t *testing.T) {
	var same, better []PerQuery
	for i := range 200 {
		same = append(same, scored(fmt.Sprint(i), 50, 50, 1, 1))
		better = append(better, scored(fmt.Sprint(i), 50+float64(i%3), 50, 1, 1))
	}
	c := Compare(same, better)
	// Differences of 0, 1, 2 in equal parts: the mean's deviation is
	// sqrt(2/3/200) = .0577, so the interval is about .995 ± .113.
	d := c.NDCG5
	if !d.Real() || math.Abs(float64(d.Low)-0.882) > 0.02 || math.Abs(float64(d.High)-1.108) > 0.02 {
		t.Errorf("interval %v–%v, want about 0.882–1.108", d.Low, d.High)
	}
	if d := c.Recall5; d.Real() || d.Low != 0 || d.High != 0 {
		t.Errorf("no difference at all = %+v, want 0–0", d)
	}
	if d := Compare(better, same).NDCG5; !d.Real() || d.High >= 0 {
		t.Errorf("turned round: interval %v–%v, want below 0", d.Low, d.High)
	}
	if len(c.Changed) != mostShown {
		t.Errorf("%d changed queries are named, want %d", len(c.Changed), mostShown)
	}
}

// TestCompareIsDeterministic: the same runs give the same bytes, and runs that
// are the same do not differ.
func TestCompareIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "n")
		draw := func(label string) []PerQuery {
			var out []PerQuery
			for i := range n {
				score := rapid.SampledFrom([]float64{0, 38.7, 63.1, 100}).Draw(t, label)
				out = append(out, scored(fmt.Sprint(i), score, score, i, score))
			}
			return out
		}
		a, b := draw("a"), draw("b")
		one := testkit.Must(json.Marshal(Compare(a, b)))(t)
		if again, _ := json.Marshal(Compare(a, b)); string(again) != string(one) {
			t.Fatalf("Compare = %s, and then %s", one, again)
		}
		self := Compare(a, a)
		if self.NDCG5.Real() || self.NDCG5.Wins+self.NDCG5.Losses > 0 || len(self.Changed) > 0 || self.Unpaired != 0 {
			t.Fatalf("a run compared with itself = %+v", self)
		}
		if d := Compare(a, b).NDCG5; n > 0 && (d.Low > d.Diff+1e-9 || d.High < d.Diff-1e-9) {
			t.Fatalf("%v lies outside its interval %v–%v", d.Diff, d.Low, d.High)
		}
	})
}
