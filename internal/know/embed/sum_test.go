package embed

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSumsAreTheSameOnEveryProcessor: what the processor's own instructions add up is
// what whole numbers are.
func TestSumsAreTheSameOnEveryProcessor(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const count = 40
	for _, dims := range []int{8, 64, 72, 256, maxDims} {
		text := make([]byte, count*dims)
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		rows := string(text)
		for _, n := range []int{0, 1, 2, 3, 17, MaxTokens} {
			terms := make([]term, n)
			for i := range terms {
				terms[i] = term{random.IntN(count) * dims, uint64(random.Uint32N(1 << 16))}
			}
			compareSums(t, rows, terms, dims)
		}
		most := make([]term, MaxTokens)
		for i := range most {
			most[i].scale = 1<<16 - 1
		}
		compareSums(t, strings.Repeat("\xff", dims), most, dims)
	}
}

func compareSums(t *testing.T, rows string, terms []term, dims int) {
	t.Helper()
	want := make([]uint32, dims)
	for _, one := range terms {
		for i := range want {
			want[i] += uint32(rows[one.at+i]) * uint32(one.scale)
		}
	}
	for name, sum := range map[string]func([]uint32, string, []term){"addRows": addRows, "addPairs": addPairs} {
		got := make([]uint32, dims)
		if sum(got, rows, terms); !slices.Equal(got, want) {
			t.Fatalf("%s of %d rows of %d numbers = %v, want %v", name, len(terms), dims, got, want)
		}
	}
}
