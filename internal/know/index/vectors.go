package index

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Vectors are the vectors of a segment's capabilities: one bit of each number
// for a fast look at all of them, one byte of each for a closer one at few.
// They are never changed; a changed copy shares every page that stayed.
type Vectors struct {
	model string
	Dims  int
	Words int // of 64 bits
	Pages []*vectorPage
	n     int    // capabilities that have one
	kept  []int8 // dims of each row of a kept file, which the segment holds
}

// VectorsPerPage is how many slots share a page of vectors.
const VectorsPerPage = 64

type vectorPage struct {
	Has   uint64
	Blank uint64                // of those, the ones that say nothing: zeros, or no numbers
	Bits  []uint64              // words of each slot
	bytes []int8                // dims of each slot; nil: all are kept
	kept  [VectorsPerPage]int32 // of each slot: its row of what is kept and one; 0: it is in bytes
	scale [VectorsPerPage]float32
}

// Vectors names the model of the segment's vectors, and how many capabilities
// have one: the embedder's, or where there are none of it, the segment's own. An
// empty name: none has.
func (s *Segment) Vectors() (model string, n int) {
	for _, v := range [...]*Vectors{s.Second, s.VectorStore} {
		if v != nil {
			return v.model, v.n
		}
	}
	return "", 0
}

// HasVector reports whether the capability in a slot has a vector of a model.
func (s *Segment) HasVector(model string, slot int) bool {
	for _, v := range [...]*Vectors{s.Second, s.VectorStore} {
		if v != nil && v.model == model {
			return v.at(slot) != nil
		}
	}
	return false
}

// WithVectors returns a segment with an embedder's vectors for some slots, beside
// those of its own model. Vectors of another embedder are dropped: they never
// mix.
func (s *Segment) WithVectors(model string, dims int, of map[int][]float32) (*Segment, error) {
	next := *s
	next.Second = s.Second.changed(model, dims)
	owned := map[int]bool{}
	for slot, vec := range of {
		if len(vec) != dims {
			return nil, fmt.Errorf("index: a vector of %s has %d numbers, not %d; the embedder is broken", model, len(vec), dims)
		}
		if slot < len(s.Docs) && s.Docs[slot].Capability != nil {
			next.Second.set(slot, vec, owned)
		}
	}
	return &next, nil
}

// changed returns a copy to be changed: of none, if v's are another model's.
func (v *Vectors) changed(model string, dims int) *Vectors {
	if v == nil || v.model != model || v.Dims != dims {
		return &Vectors{model: model, Dims: dims, Words: (dims + 63) / 64}
	}
	return &Vectors{model: v.model, Dims: v.Dims, Words: v.Words, n: v.n, kept: v.kept, Pages: slices.Clone(v.Pages)}
}

// row returns the bytes of a slot of a page.
func (v *Vectors) row(p *vectorPage, at int) []int8 {
	if k := int(p.kept[at]); k > 0 {
		return v.kept[(k-1)*v.Dims : k*v.Dims]
	}
	return p.bytes[at*v.Dims : (at+1)*v.Dims]
}

func (v *Vectors) set(slot int, vec []float32, owned map[int]bool) {
	number, at := slot/VectorsPerPage, slot%VectorsPerPage
	for len(v.Pages) <= number {
		v.Pages = append(v.Pages, nil)
	}
	p := v.Pages[number]
	if !owned[number] {
		fresh := &vectorPage{Bits: make([]uint64, v.Words*VectorsPerPage), bytes: make([]int8, v.Dims*VectorsPerPage)}
		if p != nil {
			fresh.Has, fresh.Blank, fresh.scale, fresh.kept = p.Has, p.Blank, p.scale, p.kept
			copy(fresh.Bits, p.Bits)
			copy(fresh.bytes, p.bytes)
		}
		p, v.Pages[number], owned[number] = fresh, fresh, true
	}
	if p.Has&(1<<at) == 0 {
		p.Has |= 1 << at
		v.n++
	}
	p.kept[at] = 0
	Shrink(vec, v.row(p, at))
	v.derive(p, at)
}

// without returns the vectors with some slots empty.
func (v *Vectors) without(slots []int) *Vectors {
	if v == nil || len(slots) == 0 {
		return v
	}
	next := &Vectors{model: v.model, Dims: v.Dims, Words: v.Words, n: v.n, kept: v.kept, Pages: slices.Clone(v.Pages)}
	for _, slot := range slots {
		if p := next.at(slot); p != nil {
			fresh := *p
			fresh.Has &^= 1 << (slot % VectorsPerPage)
			next.Pages[slot/VectorsPerPage] = &fresh
			next.n--
		}
	}
	return next
}

// at returns the page of a slot that has a vector.
func (v *Vectors) at(slot int) *vectorPage {
	if number := slot / VectorsPerPage; number < len(v.Pages) {
		if p := v.Pages[number]; p != nil && p.Has&(1<<(slot%VectorsPerPage)) != 0 {
			return p
		}
	}
	return nil
}

// Quantise takes the sign of each number.
func Quantise(vec []int8, into []uint64) {
	for at := range into {
		var bits uint64
		for i, x := range vec[:min(64, len(vec))] {
			bits |= uint64(uint8(-x)>>7) << (i & 63) // no branch; -128 does not occur
		}
		into[at] = bits
		vec = vec[min(64, len(vec)):]
	}
}

// Shrink takes one byte of each number and returns what they are to be
// multiplied with so that their length is one; 0 where they say nothing.
func Shrink(vec []float32, into []int8) float32 {
	var top uint32 // without the sign bit, floats sort as their bits do, and NaN comes last
	for _, x := range vec {
		top = max(top, math.Float32bits(x)&^(1<<31))
	}
	most := math.Float32frombits(top)
	if !(most > 1e-30) || math.IsInf(float64(most), 0) { // nor is it a number
		clear(into)
		return 0
	}
	scale := 127 / most
	for i, x := range vec {
		into[i] = int8(int32(x*scale+128.5) - 128) // rounded; never below zero on the way
	}
	return lengthOf(into)
}

// lengthOf returns what bytes are to be multiplied with so that their length is
// one; 0 where they say nothing.
func lengthOf(bytes []int8) float32 {
	sum := int32(0)
	for _, x := range bytes {
		sum += int32(x) * int32(x)
	}
	if sum == 0 {
		return 0
	}
	return float32(1 / math.Sqrt(float64(sum)))
}

// Code returns the signs of the vector in a slot that has one.
func (v *Vectors) Code(slot int) []uint64 {
	at := slot % VectorsPerPage
	return v.Pages[slot/VectorsPerPage].Bits[at*v.Words : (at+1)*v.Words]
}

// Cosine is the similarity of a slot's vector and the query's.
func (v *Vectors) Cosine(slot int, query []int8, scale float32) (float32, bool) {
	p := v.at(slot)
	at := slot % VectorsPerPage
	if p == nil || p.Blank&(1<<at) != 0 {
		return 0, false
	}
	own := v.row(p, at)
	query = query[:len(own)]
	var a, b, c, d int32 // four sums do not wait for each other
	i := 0
	for ; i+4 <= len(own); i += 4 {
		x, y := own[i:i+4:i+4], query[i:i+4:i+4]
		a += int32(x[0]) * int32(y[0])
		b += int32(x[1]) * int32(y[1])
		c += int32(x[2]) * int32(y[2])
		d += int32(x[3]) * int32(y[3])
	}
	for ; i < len(own); i++ {
		a += int32(own[i]) * int32(query[i])
	}
	return float32(a+b+c+d) * p.scale[at] * scale, true
}

// Cosine is the cosine of two vectors by how many of their signs differ.
func Cosine(different, dims int) float32 {
	if dims == len(likeness)-1 {
		return likeness[different]
	}
	return float32(math.Cos(math.Pi * float64(different) / float64(dims)))
}

// likeness is Cosine for the usual number of dimensions.
var likeness = func() (table [257]float32) {
	for i := range table {
		table[i] = float32(math.Cos(math.Pi * float64(i) / float64(len(table)-1)))
	}
	return table
}()

// Silent reports the code of a text of which the model knows nothing.
func Silent(code []uint64) bool {
	for _, w := range code {
		if w != 0 {
			return false
		}
	}
	return true
}

// Differences counts the bits of a that are others in b.
func Differences(a, b []uint64) int {
	if len(a) == 4 && len(b) >= 4 { // the usual size, unrolled
		return bits.OnesCount64(a[0]^b[0]) + bits.OnesCount64(a[1]^b[1]) + bits.OnesCount64(a[2]^b[2]) + bits.OnesCount64(a[3]^b[3])
	}
	n := 0
	for i, w := range a {
		n += bits.OnesCount64(w ^ b[i])
	}
	return n
}

// MostlyASCII reports whether a text is one for the built-in model, whose words
// are English: at least half of its letters are plain.
func MostlyASCII(text string) bool {
	if isASCII(text) {
		return true
	}
	plain, other := 0, 0
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case 'a' <= b|0x20 && b|0x20 <= 'z':
			plain++
		case b >= utf8.RuneSelf && utf8.RuneStart(b):
			other++
		}
	}
	return plain >= other
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
