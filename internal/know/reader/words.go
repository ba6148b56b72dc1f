package reader

import "math"

// Word embeddings have numbers of 6 bits. Those of a group share a step.
const (
	mostWord  = 31  // the largest number
	wordGroup = 32  // numbers of a group
	wordBytes = 24  // bytes of a group's numbers, four of them in three
	wholeRow  = 255 // the share of a group whose largest number is that of its row
)

// wordRows are the rows of word embeddings.
type wordRows struct {
	largest []float32 // the largest absolute weight of each row
	shares  string    // for each group, its largest weight in parts of its row's
	numbers string
	groups  int // of a row
}

// append adds a row to dst.
func (w *wordRows) append(dst []float32, row uint32) []float32 {
	at := int(row) * w.groups
	for group := at; group < at+w.groups; group++ {
		step := w.largest[row] * float32(w.shares[group]) / (wholeRow * mostWord)
		numbers := w.numbers[group*wordBytes:][:wordBytes]
		for i := 0; i < wordBytes; i += 3 {
			four := uint32(numbers[i]) | uint32(numbers[i+1])<<8 | uint32(numbers[i+2])<<16
			dst = append(dst,
				float32(int32(four&63)-32)*step, float32(int32(four>>6&63)-32)*step,
				float32(int32(four>>12&63)-32)*step, float32(int32(four>>18)-32)*step)
		}
	}
	return dst
}

// packRow returns a row's largest absolute weight, the shares of its groups and
// its numbers.
func packRow(row []float32) (largest float32, shares, numbers []byte) {
	largest = largestOf(row)
	for ; len(row) > 0; row = row[wordGroup:] {
		share := byte(0)
		if largest > 0 {
			share = byte(math.Ceil(float64(largestOf(row[:wordGroup])) / float64(largest) * wholeRow))
		}
		step := float64(largest) * float64(share) / (wholeRow * mostWord)
		shares = append(shares, share)
		for i := 0; i < wordGroup; i += 4 {
			var four uint32
			for j, v := range row[i : i+4] {
				n := 0.0
				if step > 0 {
					n = math.Round(float64(v) / step)
				}
				four |= uint32(n+mostWord+1) << (6 * j)
			}
			numbers = append(numbers, byte(four), byte(four>>8), byte(four>>16))
		}
	}
	return largest, shares, numbers
}

func largestOf(row []float32) (most float32) {
	for _, v := range row {
		most = max(most, v, -v)
	}
	return most
}
