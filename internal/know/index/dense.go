package index

import (
	"math"
	"slices"
)

// denseShortlist is how many of the nearest vectors are looked at closely.
const denseShortlist = 24

// mostNear is as near as counts, in standard deviations.
const mostNear = 8

// similar adds the capabilities whose vectors are nearest the query's, and says
// of every candidate how near it is: in standard deviations above what is usual
// in this catalog, so that it means the same for every embedder.
func (s *searcher) similar(v *View, q Query, keep Keep) {
	s.compared, s.embedding = false, 0
	vector := s.meaning(v, q)
	if len(vector) == 0 {
		return
	}
	s.bytes = grown(s.bytes, len(vector))
	scale := shrink(vector, s.bytes)
	if scale == 0 {
		return // it says nothing
	}
	words := (len(vector) + 63) / 64
	s.code = grown(s.code, words)
	quantise(s.bytes, s.code)
	s.histogram = grown(s.histogram, 64*words+1)
	clear(s.histogram)

	total := 0
	for i := range v.parts {
		if p := &v.parts[i]; p.vectors != nil && p.vectors.dims == len(vector) {
			total += len(p.docs)
		}
	}
	s.distance = grown(s.distance, total)
	clear(s.distance)
	from := 0
	for i := range v.parts {
		if p := &v.parts[i]; p.vectors != nil && p.vectors.dims == len(vector) {
			p.near(s.code, s.distance[from:from+len(p.docs)], s.histogram)
			from += len(p.docs)
		}
	}
	mean, deviation := usual(s.histogram, len(vector))
	s.nearest(v, len(vector), keep)
	for i := range s.candidates {
		c := &s.candidates[i]
		p := &v.parts[c.part]
		if p.vectors == nil || p.vectors.dims != len(vector) {
			continue
		}
		if cos, ok := p.vectors.cosine(int(c.slot), s.bytes, scale); ok {
			c.near = min(max((cos-mean)/deviation, -1), mostNear)
			c.cos, c.nearClause = cos, c.near
			c.compared, s.compared = true, true
		}
	}
	if q.Vector == nil {
		s.clauses(v, q.Text, mean, deviation)
	}
}

// nearest includes the capabilities whose vectors differ least from the
// query's. Where keep refuses most of them, it looks further.
func (s *searcher) nearest(v *View, dims int, keep Keep) {
	for want := denseShortlist; ; want *= 4 {
		limit, all := within(s.histogram, want)
		s.closest = s.closest[:0]
		from := 0
		for i := range v.parts {
			p := &v.parts[i]
			if p.vectors == nil || p.vectors.dims != dims {
				continue
			}
			for slot, d := range s.distance[from : from+len(p.docs)] {
				if d != 0 && int(d)-1 <= limit && (keep == nil || keep(i, slot, -1)) {
					s.closest = append(s.closest, place{-float32(d), int32(i), int32(slot)})
				}
			}
			from += len(p.docs)
		}
		if all || len(s.closest) >= denseShortlist/2 {
			break
		}
	}
	if len(s.closest) > 2*denseShortlist { // many are equally near
		slices.SortFunc(s.closest, v.compare)
		s.closest = s.closest[:2*denseShortlist]
	}
	for _, p := range s.closest {
		s.include(p.part, p.slot)
	}
}

// within says up to how many different bits the nearest are, about as many as
// wanted, and whether these are all there are.
func within(histogram []int32, want int) (limit int, all bool) {
	limit, all = -1, true
	n := 0
	for d, count := range histogram {
		if count == 0 {
			continue
		}
		if n > 0 && n+int(count) > want {
			return limit, false
		}
		n += int(count)
		limit = d
	}
	return limit, all
}

// usual says what similarity is usual.
func usual(histogram []int32, dims int) (mean, deviation float32) {
	var all int32
	for _, count := range histogram {
		all += count
	}
	// The nearest quarter is not what is usual: in a small catalog the few that
	// fit would raise what they are compared with.
	near := all / 4
	var n, sum, squares float64
	for d, count := range histogram {
		passed := min(count, near)
		near -= passed
		if count -= passed; count == 0 {
			continue
		}
		cos := float64(cosOf(d, dims))
		n += float64(count)
		sum += cos * float64(count)
		squares += cos * cos * float64(count)
	}
	if n == 0 {
		return 0, 1
	}
	average := sum / n
	spread := math.Sqrt(max(squares/n-average*average, 0)) * spreadOfAll
	return float32(average), float32(max(spread, leastSpread))
}

// cosOf is the cosine of two vectors by how many of their signs differ.
func cosOf(different, dims int) float32 {
	if dims == len(likeness)-1 {
		return likeness[different]
	}
	return float32(math.Cos(math.Pi * float64(different) / float64(dims)))
}

// likeness is cosOf for the usual number of dimensions.
var likeness = func() (table [257]float32) {
	for i := range table {
		table[i] = float32(math.Cos(math.Pi * float64(i) / float64(len(table)-1)))
	}
	return table
}()

const (
	spreadOfAll = 1.35 // what the lower three quarters of a bell are to be multiplied with
	leastSpread = 0.04
)

// include returns the candidate of a slot, a new one if need be.
func (s *searcher) include(part, slot int32) *candidate {
	for i := range s.candidates {
		if c := &s.candidates[i]; c.part == part && c.slot == slot {
			return c
		}
	}
	s.candidates = append(s.candidates, candidate{place: place{part: part, slot: slot}})
	return &s.candidates[len(s.candidates)-1]
}

func grown[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	return list[:n]
}
