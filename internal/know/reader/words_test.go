package reader

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWords: a packed row is near the row, in each group to half a step.
func TestWords(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const dims = 64
	var rows [][]float32
	for i := range 50 {
		row := make([]float32, dims)
		for j := range row {
			row[j] = float32(r.NormFloat64()) * float32(i) / 10
		}
		rows = append(rows, row)
	}
	rows[7][3] = 1000          // all other numbers of its group are near zero
	clear(rows[8][:wordGroup]) // a group of zeros
	rows[9] = slices.Repeat([]float32{-1}, dims)

	packed := wordRows{groups: dims / wordGroup}
	for _, row := range rows {
		largest, shares, numbers := packRow(row)
		packed.largest = append(packed.largest, largest)
		packed.shares += string(shares)
		packed.numbers += string(numbers)
	}
	for i, row := range rows {
		got := packed.append(nil, uint32(i))
		if len(got) != dims {
			t.Fatalf("row %d has %d numbers, want %d", i, len(got), dims)
		}
		for j, want := range row {
			group := j / wordGroup * wordGroup
			half := float64(largestOf(row[group:group+wordGroup])+largestOf(row)/wholeRow) / mostWord / 2
			if math.Abs(float64(got[j]-want)) > half*1.0001 {
				t.Errorf("row %d, number %d = %v, want %v within %v", i, j, got[j], want, half)
			}
		}
	}
}
