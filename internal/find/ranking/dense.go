package ranking

import (
	"math"
	"math/bits"
	"slices"

	"ken/internal/know/index"
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
	scale := index.Shrink(vector, s.bytes)
	if scale == 0 {
		return // it says nothing
	}
	words := (len(vector) + 63) / 64
	s.code = grown(s.code, words)
	index.Quantise(s.bytes, s.code)
	s.histogram = grown(s.histogram, 64*words+1)
	clear(s.histogram)

	total := 0
	for i := range v.parts {
		if p := &v.parts[i]; p.VectorStore != nil && p.VectorStore.Dims == len(vector) {
			total += len(p.Docs)
		}
	}
	s.distance = grown(s.distance, total)
	clear(s.distance)
	from := 0
	for i := range v.parts {
		if p := &v.parts[i]; p.VectorStore != nil && p.VectorStore.Dims == len(vector) {
			p.near(s.code, s.distance[from:from+len(p.Docs)], s.histogram)
			from += len(p.Docs)
		}
	}
	mean, deviation := usual(s.histogram, len(vector))
	s.nearest(v, len(vector), keep)
	for i := range s.candidates {
		c := &s.candidates[i]
		p := &v.parts[c.part]
		if p.VectorStore == nil || p.VectorStore.Dims != len(vector) {
			continue
		}
		if cos, ok := p.VectorStore.Cosine(int(c.slot), s.bytes, scale); ok {
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
			if p.VectorStore == nil || p.VectorStore.Dims != dims {
				continue
			}
			for slot, d := range s.distance[from : from+len(p.Docs)] {
				if d != 0 && int(d)-1 <= limit && (keep == nil || keep(i, slot, -1)) {
					s.closest = append(s.closest, place{-float32(d), int32(i), int32(slot)})
				}
			}
			from += len(p.Docs)
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
		cos := float64(index.Cosine(d, dims))
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

// near looks at all vectors of a part: it returns for each slot how many bits are
// different from the query's, and how many slots have each difference.
func (p *part) near(query []uint64, distance []uint16, histogram []int32) {
	v := p.VectorStore
	for number, page := range v.Pages {
		if page == nil {
			continue
		}
		base := number * index.VectorsPerPage
		seen := page.Has &^ page.Blank
		if number < len(p.visible) {
			seen &= p.visible[number]
		} else {
			seen = 0
		}
		for ; seen != 0; seen &= seen - 1 {
			at := bits.TrailingZeros64(seen)
			d := index.Differences(page.Bits[at*v.Words:(at+1)*v.Words], query)
			distance[base+at] = uint16(d) + 1 // 0: has none
			histogram[d]++
		}
	}
}
