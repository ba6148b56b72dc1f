package ranking

import (
	_ "embed"
	"math"
	"slices"
	"sync"

	"ken/internal/know/index"
)

// elsewhereFile has the second reader's vectors of capabilities that stand for all
// that a catalog may lack: operations of public services and the capabilities of
// the training sets. training/gate.py chooses them, and writes the file: a byte
// for each number.
//
// How similar the best hit is means little by itself: a short message is near
// nothing, and one in the words of documents is near anything. What there is
// elsewhere says what similarity is to be expected of this message. If things that
// the catalog does not have are nearer, the message wants one of these.
//
//go:embed elsewhere.bin
var elsewhereFile string

// What the last step of the gate is made of.
const (
	elsewhereBias       = iota
	elsewhereBase       // the gate by the features of the answer
	elsewhereSimilarity // the highest similarity of a candidate by the second reader
	elsewhereElsewhere  // the mean similarity of the nearest elsewhere
	elsewhereCount      // how many capabilities there are
	elsewhereFeatures
)

const (
	elsewhereNearest = 16  // whose mean counts
	elsewhereLooked  = 64  // that are compared number by number
	elsewhereMost    = 400 // capabilities: the cases it was fitted to have no more
)

// An elsewhereTable is elsewhereFile, read.
type elsewhereTable struct {
	codes []uint64 // signs, elsewhereWords for each
	bytes []int8
	scale []float32
}

const elsewhereWords = (secondDims + 63) / 64

// secondDims is how many numbers the vectors of the second reader have.
const secondDims = 384

var elsewhere = sync.OnceValue(func() *elsewhereTable {
	n := len(elsewhereFile) / secondDims
	t := &elsewhereTable{codes: make([]uint64, n*elsewhereWords), bytes: make([]int8, n*secondDims), scale: make([]float32, n)}
	for i := range t.bytes {
		t.bytes[i] = int8(elsewhereFile[i])
	}
	for i := range n {
		row, sum := t.bytes[i*secondDims:(i+1)*secondDims], 0
		for _, x := range row {
			sum += int(x) * int(x)
		}
		t.scale[i] = float32(1 / math.Sqrt(float64(max(sum, 1))))
		index.Quantise(row, t.codes[i*elsewhereWords:(i+1)*elsewhereWords])
	}
	return t
})

// elsewhere returns the mean similarity of a message to the nearest elsewhere. The
// signs of the vectors say which these are, about.
func (c *channel) elsewhere() float64 {
	t := elsewhere()
	var distance [secondDims + 1]int32
	far := make([]uint16, len(t.scale))
	for i := range far {
		far[i] = uint16(index.Differences(t.codes[i*elsewhereWords:(i+1)*elsewhereWords], c.code))
		distance[far[i]]++
	}
	limit, n := 0, distance[0]
	for n < elsewhereLooked && limit < secondDims {
		limit++
		n += distance[limit]
	}
	near := make([]float64, 0, n)
	for i, d := range far {
		if int(d) > limit {
			continue
		}
		dot := int32(0)
		for k, x := range t.bytes[i*secondDims : (i+1)*secondDims] {
			dot += int32(x) * int32(c.bytes[k])
		}
		near = append(near, float64(dot)*float64(t.scale[i])*float64(c.scale))
	}
	slices.Sort(near)
	near = near[max(0, len(near)-elsewhereNearest):]
	sum := 0.0
	for _, x := range near {
		sum += x
	}
	return sum / float64(max(len(near), 1))
}

// elsewhereSays reports whether the second reader read the message, so that it can
// be compared with what there is elsewhere.
func (s *searcher) elsewhereSays() bool {
	return s.vectors.read && !s.vectors.outside && len(s.vectors.embedder.bytes) == secondDims
}

// countOf returns how many capabilities a view has, as the weights count it.
func countOf(v *View) float64 { return math.Log(float64(min(v.n, elsewhereMost)+1)) / 8 }

// againstElsewhere takes the gate's last step, in log-odds.
func againstElsewhere(base, similarity, elsewhere, count float64) float64 {
	w := &elsewhereWeights
	return w[elsewhereBias] + w[elsewhereBase]*base + w[elsewhereSimilarity]*similarity + w[elsewhereElsewhere]*elsewhere + w[elsewhereCount]*count
}

// What the size of a catalog adds to the chance of the best hit, where the second
// reader read the message: in a small catalog the same hit is more likely the
// right one.
const (
	sizedSmall = iota // see smallness
	sizedBoth         // the same times the chance
	sizedFeatures
)

// usualCount is how many capabilities a catalog has that chances were fitted to.
const usualCount = 150

// smallness returns how much smaller a view is than usual ones; 0 if it is not.
func smallness(v *View) float64 {
	return max(0, math.Log(usualCount/float64(max(v.n, 1)))) / 4
}
