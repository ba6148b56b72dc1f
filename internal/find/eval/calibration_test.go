package eval

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestReliabilityByHand(t *testing.T) {
	bin, ece := reliability([]promise{
		{0.95, true}, {0.85, true}, // two bins, one right each: off by .05 and .15
		{0.25, false}, {0.25, true}, // one bin: .25 promised, .5 kept
		{1, true},    // with .95: mean .975, all right
		{0.1, false}, // the lower edge belongs to the bin
	})
	// (2×.025 + .15 + 2×.25 + .1) / 6
	if want := 0.8 / 6; math.Abs(float64(ece)-want) > 1e-12 {
		t.Errorf("calibration error = %v, want %v", ece, want)
	}
	for i, want := range []int{0, 1, 2, 0, 0, 0, 0, 0, 1, 2} {
		if bin[i].N != want {
			t.Errorf("bin %d holds %d, want %d", i, bin[i].N, want)
		}
	}
	if b := bin[2]; b.From != 0.2 || b.To != 0.3 || b.Score != 0.25 || b.Right != 0.5 {
		t.Errorf("bin 2 = %+v, want 0.2–0.3, .25 promised and .5 kept", b)
	}
	if b := bin[0]; b.Score.Defined() || b.Right.Defined() {
		t.Errorf("bin 0 = %+v, want nothing in it", b)
	}
	if _, ece := reliability(nil); ece.Defined() {
		t.Errorf("calibration error of nothing = %v, want undefined", ece)
	}
}

// TestPromises: only answerable queries count, and scores that are no
// probabilities have no calibration.
func TestPromises(t *testing.T) {
	hit := func(id string, score float64) Ranked { return Ranked{id, score} }
	each := []PerQuery{
		{Gold: []string{"a"}, Hits: []Ranked{hit("a", 0.9), hit("b", 0.4)}},
		{Gold: []string{"a"}, Hits: []Ranked{hit("b", 0.2)}, Abstained: true},
		{Gold: []string{"a"}, Hits: []Ranked{}},
		{Hits: []Ranked{hit("b", 0.3)}},
	}
	if got := promises(each, 1); len(got) != 2 || got[0] != (promise{0.9, true}) || got[1] != (promise{0.2, false}) {
		t.Errorf("promises = %v, want those of the two best hits", got)
	}
	if got := promises(each, 5); len(got) != 3 {
		t.Errorf("promises of five = %v, want three", got)
	}
	for _, bad := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		each[1].Hits[0].Score = bad
		if got := promises(each, 1); got != nil {
			t.Errorf("promises with a score of %v = %v, want none", bad, got)
		}
	}
}

func TestReliabilityProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) promise {
			return promise{rapid.Float64Range(0, 1).Draw(t, "score"), rapid.Bool().Draw(t, "right")}
		}), 1, 40).Draw(t, "promises")
		bin, ece := reliability(list)
		n := 0
		for i, b := range bin {
			n += b.N
			if b.N > 0 && (float64(b.Score) < b.From-1e-9 || float64(b.Score) > b.To+1e-9) {
				t.Fatalf("bin %d holds a mean score of %v", i, b.Score)
			}
		}
		if n != len(list) || !(ece >= 0 && ece <= 1) {
			t.Fatalf("%d of %d promises in bins, error %v", n, len(list), ece)
		}
		for i := range list {
			list[i].score = 0
			if list[i].right {
				list[i].score = 1
			}
		}
		if _, ece := reliability(list); ece != 0 {
			t.Fatalf("an oracle has a calibration error of %v", ece)
		}
	})
}
