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

// A channel compares the message's vector of one model with those of a view.
type channel struct {
	second    bool // the model is the embedder's
	scale     float32
	bytes     []int8
	code      []uint64
	distance  []uint16
	histogram []int32
	mean      float32 // what similarity is usual
	deviation float32
}

// store returns the vectors of a part that the channel compares with; nil where
// there are none.
func (c *channel) store(p *part) *index.Vectors {
	store := p.VectorStore
	if c.second {
		store = p.Second
	}
	if store == nil || store.Dims != len(c.bytes) {
		return nil
	}
	return store
}

// open compares a vector with all of a view. It reports whether there was
// anything to compare.
func (c *channel) open(v *View, vector []float32, second bool) bool {
	c.second = second
	c.bytes = grown(c.bytes, len(vector))
	if c.scale = index.Shrink(vector, c.bytes); c.scale == 0 {
		return false // it says nothing
	}
	words := (len(vector) + 63) / 64
	c.code = grown(c.code, words)
	index.Quantise(c.bytes, c.code)
	c.histogram = grown(c.histogram, 64*words+1)
	clear(c.histogram)
	total := 0
	for i := range v.parts {
		if c.store(&v.parts[i]) != nil {
			total += len(v.parts[i].Docs)
		}
	}
	c.distance = grown(c.distance, total)
	clear(c.distance)
	from := 0
	for i := range v.parts {
		if p := &v.parts[i]; c.store(p) != nil {
			p.near(c.store(p), c.code, c.distance[from:from+len(p.Docs)], c.histogram)
			from += len(p.Docs)
		}
	}
	c.mean, c.deviation = usual(c.histogram, len(vector))
	return total > 0
}

// compare returns how similar a candidate is, and how many standard deviations
// more than usual.
func (c *channel) compare(v *View, of *candidate) (cos, near float32, ok bool) {
	store := c.store(&v.parts[of.part])
	if store == nil {
		return 0, 0, false
	}
	if cos, ok = store.Cosine(int(of.slot), c.bytes, c.scale); !ok {
		return 0, 0, false
	}
	return cos, min(max((cos-c.mean)/c.deviation, -1), mostNear), true
}

// similar adds the capabilities whose vectors are nearest the query's, and says
// of every candidate how near it is: in standard deviations above what is usual
// in this catalog, so that it means the same for every embedder.
//
// Where an embedder gives the message a vector, there are two opinions. A
// candidate that the embedder has not read yet has one, which counts twice. Where
// the program's own model cannot read the message, the embedder's stands in for
// it.
func (s *searcher) similar(v *View, q Query, keep Keep) {
	s.vectors.compared, s.vectors.read, s.vectors.unread, s.vectors.embedding = false, false, false, 0
	s.vectors.outside = len(q.Vector) > 0 && !q.English
	own := s.meaning(v, q)
	first, second := &s.vectors.own, (*channel)(nil)
	switch {
	case len(own) > 0 && first.open(v, own, false):
		if len(q.Vector) > 0 && s.vectors.embedder.open(v, q.Vector, true) {
			second = &s.vectors.embedder
		}
	case len(q.Vector) > 0 && !q.English && first.open(v, q.Vector, true):
		s.vectors.unread = false
	default:
		return
	}
	s.nearest(v, first, keep)
	if second != nil {
		s.nearest(v, second, keep)
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if cos, near, ok := first.compare(v, c); ok {
			c.cos, c.near, c.nearClause = cos, near, near
			c.compared, s.vectors.compared = true, true
		}
		if second == nil {
			continue
		}
		c.cosRead, c.nearRead = c.cos, c.near
		if cos, near, ok := second.compare(v, c); ok {
			c.cosRead, c.nearRead = cos, near
			s.vectors.read = true
		}
	}
	if !first.second {
		s.clauses(v, q.Text, first.mean, first.deviation)
	}
}

// nearest includes the capabilities whose vectors differ least from the
// query's. Where keep refuses most of them, it looks further.
func (s *searcher) nearest(v *View, c *channel, keep Keep) {
	for want := denseShortlist; ; want *= 4 {
		limit, all := within(c.histogram, want)
		s.vectors.closest = s.vectors.closest[:0]
		from := 0
		for i := range v.parts {
			p := &v.parts[i]
			if c.store(p) == nil {
				continue
			}
			for slot, d := range c.distance[from : from+len(p.Docs)] {
				if d != 0 && int(d)-1 <= limit && (keep == nil || keep(i, slot, -1)) {
					s.vectors.closest = append(s.vectors.closest, place{-float32(d), int32(i), int32(slot)})
				}
			}
			from += len(p.Docs)
		}
		if all || len(s.vectors.closest) >= denseShortlist/2 {
			break
		}
	}
	if len(s.vectors.closest) > 2*denseShortlist { // many are equally near
		slices.SortFunc(s.vectors.closest, v.compare)
		s.vectors.closest = s.vectors.closest[:2*denseShortlist]
	}
	for _, p := range s.vectors.closest {
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
func (p *part) near(v *index.Vectors, query []uint64, distance []uint16, histogram []int32) {
	var code [4]uint64 // of the usual size
	copy(code[:], query)
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
		if seen == math.MaxUint64 && v.Words == len(code) && len(histogram) > 64*len(code) {
			nearPage((*[4 * index.VectorsPerPage]uint64)(page.Bits), &code, (*[index.VectorsPerPage]uint16)(distance[base:]), histogram)
			continue
		}
		for ; seen != 0; seen &= seen - 1 {
			at := bits.TrailingZeros64(seen)
			d := index.Differences(page.Bits[at*v.Words:(at+1)*v.Words], query)
			distance[base+at] = uint16(d) + 1 // 0: has none
			histogram[d]++
		}
	}
}

// nearPage is near for a page all of which is seen: nearly every page of a large
// catalog.
func nearPage(page *[4 * index.VectorsPerPage]uint64, query *[4]uint64, distance *[index.VectorsPerPage]uint16, histogram []int32) {
	different(page, query, distance)
	for _, d := range distance {
		histogram[d-1]++
	}
}

// differentBits returns for each row of a page how many bits are different from the
// query's, and one.
func differentBits(page *[4 * index.VectorsPerPage]uint64, query *[4]uint64, distance *[index.VectorsPerPage]uint16) {
	for at := range distance {
		distance[at] = uint16(index.Differences(page[4*at:4*at+4], query[:])) + 1
	}
}
