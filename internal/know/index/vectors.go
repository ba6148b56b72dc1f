package index

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// vectors are the vectors of a segment's capabilities: one bit of each number
// for a fast look at all of them, one byte of each for a closer one at few.
// They are never changed; a changed copy shares every page that stayed.
type vectors struct {
	model string
	dims  int
	words int // of 64 bits
	pages []*vectorPage
	n     int // capabilities that have one
}

const vectorsPerPage = 64

type vectorPage struct {
	has   uint64
	blank uint64   // of those, the ones that say nothing: zeros, or no numbers
	bits  []uint64 // words of each slot
	bytes []int8   // dims of each slot
	scale [vectorsPerPage]float32
}

// Vectors names the model of the segment's vectors, and how many capabilities
// have one. An empty name: none has.
func (s *Segment) Vectors() (model string, n int) {
	if s.vectors == nil {
		return "", 0
	}
	return s.vectors.model, s.vectors.n
}

// HasVector reports whether the capability in a slot has a vector of a model.
func (s *Segment) HasVector(model string, slot int) bool {
	v := s.vectors
	return v != nil && v.model == model && v.at(slot) != nil
}

// WithVectors returns a segment with vectors of a model for some slots. Vectors
// of another model are dropped: they never mix.
func (s *Segment) WithVectors(model string, dims int, of map[int][]float32) (*Segment, error) {
	next := *s
	next.vectors, next.model = s.vectors.changed(model, dims), nil
	owned := map[int]bool{}
	for slot, vec := range of {
		if len(vec) != dims {
			return nil, fmt.Errorf("index: a vector of %s has %d numbers, not %d; the embedder is broken", model, len(vec), dims)
		}
		if slot < len(s.docs) && s.docs[slot].capability != nil {
			next.vectors.set(slot, vec, owned)
		}
	}
	return &next, nil
}

// changed returns a copy to be changed: of none, if v's are another model's.
func (v *vectors) changed(model string, dims int) *vectors {
	if v == nil || v.model != model || v.dims != dims {
		return &vectors{model: model, dims: dims, words: (dims + 63) / 64}
	}
	return &vectors{model: v.model, dims: v.dims, words: v.words, n: v.n, pages: slices.Clone(v.pages)}
}

func (v *vectors) set(slot int, vec []float32, owned map[int]bool) {
	number, at := slot/vectorsPerPage, slot%vectorsPerPage
	for len(v.pages) <= number {
		v.pages = append(v.pages, nil)
	}
	p := v.pages[number]
	if !owned[number] {
		fresh := &vectorPage{bits: make([]uint64, v.words*vectorsPerPage), bytes: make([]int8, v.dims*vectorsPerPage)}
		if p != nil {
			fresh.has, fresh.blank, fresh.scale = p.has, p.blank, p.scale
			copy(fresh.bits, p.bits)
			copy(fresh.bytes, p.bytes)
		}
		p, v.pages[number], owned[number] = fresh, fresh, true
	}
	if p.has&(1<<at) == 0 {
		p.has |= 1 << at
		v.n++
	}
	shrink(vec, p.bytes[at*v.dims:(at+1)*v.dims])
	v.derive(p, at)
}

// without returns the vectors with some slots empty.
func (v *vectors) without(slots []int) *vectors {
	if v == nil || len(slots) == 0 {
		return v
	}
	next := &vectors{model: v.model, dims: v.dims, words: v.words, n: v.n, pages: slices.Clone(v.pages)}
	for _, slot := range slots {
		if p := next.at(slot); p != nil {
			fresh := *p
			fresh.has &^= 1 << (slot % vectorsPerPage)
			next.pages[slot/vectorsPerPage] = &fresh
			next.n--
		}
	}
	return next
}

// at returns the page of a slot that has a vector.
func (v *vectors) at(slot int) *vectorPage {
	if number := slot / vectorsPerPage; number < len(v.pages) {
		if p := v.pages[number]; p != nil && p.has&(1<<(slot%vectorsPerPage)) != 0 {
			return p
		}
	}
	return nil
}

// quantise takes the sign of each number.
func quantise(vec []int8, into []uint64) {
	for at := range into {
		var bits uint64
		for i, x := range vec[:min(64, len(vec))] {
			bits |= uint64(uint8(-x)>>7) << (i & 63) // no branch; -128 does not occur
		}
		into[at] = bits
		vec = vec[min(64, len(vec)):]
	}
}

// shrink takes one byte of each number and gives what they are to be
// multiplied with so that their length is one; 0 where they say nothing.
func shrink(vec []float32, into []int8) float32 {
	var most float32
	for _, x := range vec {
		most = max(most, x, -x)
	}
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

// near looks at all vectors of a part: it gives for each slot how many bits are
// different from the query's, and how many slots have each difference.
func (p *part) near(query []uint64, distance []uint16, histogram []int32) {
	v := p.vectors
	for number, page := range v.pages {
		if page == nil {
			continue
		}
		base := number * vectorsPerPage
		seen := page.has &^ page.blank
		if number < len(p.visible) {
			seen &= p.visible[number]
		} else {
			seen = 0
		}
		for ; seen != 0; seen &= seen - 1 {
			at := bits.TrailingZeros64(seen)
			d := differences(page.bits[at*v.words:(at+1)*v.words], query)
			distance[base+at] = uint16(d) + 1 // 0: has none
			histogram[d]++
		}
	}
}

// code returns the signs of the vector in a slot that has one.
func (v *vectors) code(slot int) []uint64 {
	at := slot % vectorsPerPage
	return v.pages[slot/vectorsPerPage].bits[at*v.words : (at+1)*v.words]
}

// cosine is the similarity of a slot's vector and the query's.
func (v *vectors) cosine(slot int, query []int8, scale float32) (float32, bool) {
	p := v.at(slot)
	at := slot % vectorsPerPage
	if p == nil || p.blank&(1<<at) != 0 {
		return 0, false
	}
	own := p.bytes[at*v.dims : (at+1)*v.dims]
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
