package index

import "ken/capability"

// size counts what a segment remembers by words and names, of capabilities that
// are gone too.
func (s *Segment) size() int { return s.words.len() + s.stems.len() + s.names.len() }

// Worn reports whether much of a segment is about capabilities that are gone:
// changes leave their words, their names and their slots behind. Then [Segment.Anew]
// is worth its time. Between two times that it is lie as many changes as half of
// the segment has words, so that their costs add up to little.
func (s *Segment) Worn() bool {
	const least = 4096 // below this nobody notices
	return s.size() > s.made+s.made/2+least || len(s.free) > len(s.docs)/3+least/64
}

// Anew returns a segment of the same capabilities, as one that never had others,
// and by slot where each capability is in it; -1: the slot was free.
func (s *Segment) Anew() (next *Segment, to []int32) {
	var list []*capability.Capability
	to = make([]int32, len(s.docs))
	for slot := range s.docs {
		to[slot] = -1
		if c := s.docs[slot].capability; c != nil {
			to[slot] = int32(len(list))
			list = append(list, c)
		}
	}
	next = BuildWith(s.model, list)
	if s.model == nil && s.vectors != nil { // an embedder's, which nobody here can make
		next.vectors = s.vectors.moved(to)
	}
	return next, to
}

// moved returns the vectors with those of each slot in another one.
func (v *vectors) moved(to []int32) *vectors {
	next := &vectors{model: v.model, dims: v.dims, words: v.words}
	for from, slot := range to {
		p := v.at(from)
		if slot < 0 || p == nil {
			continue
		}
		number, at := int(slot)/vectorsPerPage, int(slot)%vectorsPerPage
		for len(next.pages) <= number {
			next.pages = append(next.pages, &vectorPage{bits: make([]uint64, v.words*vectorsPerPage), bytes: make([]int8, v.dims*vectorsPerPage)})
		}
		own := from % vectorsPerPage
		q := next.pages[number]
		copy(q.bytes[at*v.dims:(at+1)*v.dims], p.bytes[own*v.dims:(own+1)*v.dims])
		q.has |= 1 << at
		next.n++
		next.derive(q, at)
	}
	return next
}
