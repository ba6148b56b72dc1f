package index

import "ken/capability"

// size counts what a segment remembers by words and names, of capabilities that
// are gone too.
func (s *Segment) size() int { return s.Words.len() + s.Stems.len() + s.Names.len() }

// Fragmented reports whether much of a segment is about capabilities that are gone:
// changes leave their words, names and slots behind. Then [Segment.Rebuilt] is worth
// its cost. Between two calls of it lie as many changes as half the segment has
// words, so the cost per change is small.
func (s *Segment) Fragmented() bool {
	const least = 4096 // below this it makes no difference
	return s.size() > s.made+s.made/2+least || len(s.free) > len(s.Docs)/3+least/64
}

// Rebuilt returns a segment rebuilt from the same capabilities, without traces of
// others, and for each old slot the new slot of its capability; -1 if the old
// slot was free.
func (s *Segment) Rebuilt() (next *Segment, to []int32) {
	var list []*capability.Capability
	to = make([]int32, len(s.Docs))
	for slot := range s.Docs {
		to[slot] = -1
		if c := s.Docs[slot].Capability; c != nil {
			to[slot] = int32(len(list))
			list = append(list, c)
		}
	}
	next = BuildWith(s.Model, list)
	if s.Second != nil { // an embedder's, which cannot be made here
		next.Second = s.Second.moved(to)
	}
	return next, to
}

// moved returns the vectors with those of each slot in another one.
func (v *Vectors) moved(to []int32) *Vectors {
	next := &Vectors{model: v.model, Dims: v.Dims, Words: v.Words}
	for from, slot := range to {
		p := v.at(from)
		if slot < 0 || p == nil {
			continue
		}
		number, at := int(slot)/VectorsPerPage, int(slot)%VectorsPerPage
		for len(next.Pages) <= number {
			next.Pages = append(next.Pages, &vectorPage{Bits: make([]uint64, v.Words*VectorsPerPage), bytes: make([]int8, v.Dims*VectorsPerPage)})
		}
		own := from % VectorsPerPage
		q := next.Pages[number]
		copy(q.bytes[at*v.Dims:(at+1)*v.Dims], v.row(p, own))
		q.Has |= 1 << at
		next.n++
		next.derive(q, at)
	}
	return next
}
