package embed

import "math"

// A term is one row of a sum: where it begins, and how often it counts.
type term struct {
	at    int
	scale uint64 // below 1<<16
}

// maxDims is the most numbers that a vector may have. They come in groups of 8,
// the bytes of one word.
const maxDims, group = 512, 8

// sum makes the sum of at most [MaxTokens] terms and brings it to unit length. No
// number of it passes 32 bits: a byte times a scale times MaxTokens is at most
// 255 * 65,535 * 256. What all bytes have too much, 128 times their scale, is taken off
// at the end.
func (m *Model) sum(vector []float32, terms []term) {
	var room [maxDims]uint32
	sums := room[:len(vector)]
	addRows(sums, m.rows, terms)
	var excess int64
	for _, t := range terms {
		excess += 128 * int64(t.scale)
	}
	unit(vector, sums, excess)
}

// addPairs writes the sums of terms for any processor. Two numbers are added up side by
// side in a word of 64 bits: those that are 4 bytes apart in the row.
func addPairs(sums []uint32, rows string, terms []term) {
	var room [maxDims / 2]uint64
	pairs := room[:len(sums)/2]
	row := func(t term) string { return rows[t.at : t.at+len(sums)] }
	for i, t := range terms {
		if i%2 == 1 {
			add(pairs, row(terms[i-1]), row(t), terms[i-1].scale, t.scale)
		}
	}
	if n := len(terms); n%2 == 1 {
		add(pairs, row(terms[n-1]), row(terms[n-1]), terms[n-1].scale, 0)
	}
	for i := range sums {
		sums[i] = uint32(pairs[i/group*(group/2)+i%(group/2)] >> (i % group / (group / 2) * 32))
	}
}

// add adds two rows to sums; two, because that halves the stores.
func add(sums []uint64, a, b string, s, t uint64) {
	const low = 0x000000FF_000000FF
	for len(a) >= group && len(b) >= group && len(sums) >= group/2 {
		x, y := load64(a, 0), load64(b, 0)
		sums[0] += (x&low)*s + (y&low)*t
		sums[1] += (x>>8&low)*s + (y>>8&low)*t
		sums[2] += (x>>16&low)*s + (y>>16&low)*t
		sums[3] += (x>>24&low)*s + (y>>24&low)*t
		a, b, sums = a[group:], b[group:], sums[group/2:]
	}
}

// unit takes the excess off sums and divides them by their length. The squares
// are added in two halves, as together they may pass 64 bits; both halves are
// below 1<<53, so exact as float64, and so is the product with 1<<32.
func unit(vector []float32, sums []uint32, excess int64) {
	var high, low uint64
	for _, x := range sums {
		a := int64(x) - excess
		square := uint64(a * a)
		high += square >> 32
		low += square & math.MaxUint32
	}
	if high|low == 0 {
		clear(vector)
		return
	}
	factor := 1 / math.Sqrt(float64(float64(high)*(1<<32))+float64(low))
	for i, x := range sums[:len(vector)] {
		vector[i] = float32(float64(int64(x)-excess) * factor)
	}
}
