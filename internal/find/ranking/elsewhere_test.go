package ranking

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ken/internal/know/index"
)

// TestElsewhere: the vectors are whole, and what the signs choose of them has
// about the mean similarity of the nearest of all.
func TestElsewhere(t *testing.T) {
	if len(elsewhereFile) == 0 || len(elsewhereFile)%secondDims != 0 {
		t.Fatalf("elsewhere.bin has %d bytes, want a multiple of %d", len(elsewhereFile), secondDims)
	}
	table := elsewhere()
	n := len(table.scale)
	if n < elsewhereLooked {
		t.Fatalf("elsewhere.bin has %d vectors, want at least %d", n, elsewhereLooked)
	}
	random := rand.New(rand.NewPCG(4, 2))
	for range 50 {
		// A message is somewhere between two of them.
		a, b := random.IntN(n)*secondDims, random.IntN(n)*secondDims
		vector := make([]float32, secondDims)
		for k := range vector {
			vector[k] = float32(table.bytes[a+k]) + float32(table.bytes[b+k]) + 10*float32(random.NormFloat64())
		}
		c := channel{bytes: make([]int8, secondDims), code: make([]uint64, elsewhereWords)}
		c.scale = index.Shrink(vector, c.bytes)
		index.Quantise(c.bytes, c.code)
		all := make([]float64, n)
		for i := range all {
			dot := 0
			for k, x := range c.bytes {
				dot += int(x) * int(table.bytes[i*secondDims+k])
			}
			all[i] = float64(dot) * float64(table.scale[i]) * float64(c.scale)
		}
		slices.Sort(all)
		want := 0.0
		for _, x := range all[n-elsewhereNearest:] {
			want += x / elsewhereNearest
		}
		if got := c.elsewhere(); math.Abs(got-want) > 0.02 || got > want+1e-9 {
			t.Errorf("the mean similarity of the nearest is %.4f, want %.4f", got, want)
		}
	}
}

// TestAgainstElsewhere: a candidate that is more similar raises the odds, things
// elsewhere that are more similar lower them, and another embedder is left alone.
func TestAgainstElsewhere(t *testing.T) {
	w := elsewhereWeights
	if w[elsewhereBase] <= 0 || w[elsewhereSimilarity] <= 0 || w[elsewhereElsewhere] >= 0 {
		t.Errorf("the weights are %v, want those of the gate and of similarity above zero, and that of elsewhere below", w)
	}
	if a, b := againstElsewhere(1, 0.5, 0.4, 0.5), againstElsewhere(1, 0.5, 0.5, 0.5); a <= b {
		t.Errorf("with nearer things elsewhere the odds are %v, without %v", b, a)
	}
	s := new(searcher)
	s.vectors.read = true
	s.vectors.embedder.bytes = make([]int8, secondDims)
	if !s.elsewhereSays() {
		t.Error("the second reader's vector is not compared")
	}
	if s.vectors.outside = true; s.elsewhereSays() {
		t.Error("the vector of an embedder that is not Ken's is compared with those of the second reader")
	}
}

// TestSizedChance: where a hit stands before another, its chance is no lower,
// whatever the size of the catalog.
func TestSizedChance(t *testing.T) {
	for _, n := range []int{1, 10, 66, 200, 400, 5000} {
		c := confidence{fit: 1, weights: &withEmbedder.chance, shares: 3, evidence: 0.5, small: smallness(&View{n: n})}
		before := 1.0
		for score := float32(4); score > -4; score -= 0.25 {
			now := c.of(score, 4)
			if now > before || now <= 0 {
				t.Fatalf("with %d capabilities a hit %.2f behind the best has the chance %v, the one before it %v", n, 4-score, now, before)
			}
			before = now
		}
	}
}
