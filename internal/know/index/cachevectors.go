package index

import (
	"encoding/binary"

	"ken/internal/know/embed"
)

// codeWords is how many words of 64 bits the code of a word has.
func codeWords(model *embed.Model) int {
	if model == nil {
		return 0
	}
	return model.Dimensions() / 64
}

// appendVectors writes the vectors of a new segment, which has one of its model
// for every capability, and the codes of the words in names. Signs and lengths
// follow from the bytes.
func (s *Segment) appendVectors(out []byte) []byte {
	if s.Model == nil {
		return out
	}
	for slot := range s.Docs {
		at := slot % VectorsPerPage
		for _, b := range s.VectorStore.Pages[slot/VectorsPerPage].bytes[at*s.VectorStore.Dims : (at+1)*s.VectorStore.Dims] {
			out = append(out, byte(b))
		}
	}
	codes := 0
	for i := range s.Docs {
		codes += len(s.Docs[i].nameCodes)
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(codes))
	for i := range s.Docs {
		for _, code := range s.Docs[i].nameCodes {
			out = binary.LittleEndian.AppendUint64(out, code)
		}
	}
	return out
}

// vectors reads what appendVectors wrote into the slots of at, of n; a slot below
// zero is left out.
func (r *reader) vectors(s *Segment, at []int32, n int) (codes []uint64, ok bool) {
	if s.Model == nil {
		return nil, true
	}
	dims := s.Model.Dimensions()
	all := r.bytes(len(at) * dims)
	if r.bad {
		return nil, false
	}
	s.VectorStore = (*Vectors)(nil).changed(s.Model.Model(), dims)
	s.VectorStore.fill(all, at, n)
	codes = make([]uint64, r.length(8))
	for i := range codes {
		codes[i] = binary.LittleEndian.Uint64(r.rest[8*i:])
	}
	r.rest = r.rest[8*len(codes):]
	return codes, !r.bad
}

// fill sets the vectors of the slots in at, of n, to those in bytes.
func (v *Vectors) fill(bytes []byte, at []int32, n int) {
	for range (n + VectorsPerPage - 1) / VectorsPerPage {
		v.Pages = append(v.Pages, &vectorPage{Bits: make([]uint64, v.Words*VectorsPerPage), bytes: make([]int8, v.Dims*VectorsPerPage)})
	}
	for i, slot := range at {
		if slot < 0 {
			continue
		}
		p, at := v.Pages[slot/VectorsPerPage], int(slot%VectorsPerPage)
		own := p.bytes[at*v.Dims : (at+1)*v.Dims]
		for j, b := range bytes[i*v.Dims : (i+1)*v.Dims] {
			own[j] = int8(b)
		}
		p.Has |= 1 << at
		v.n++
		v.derive(p, at)
	}
}

// derive makes what follows from the bytes of a slot: its signs and its length.
func (v *Vectors) derive(p *vectorPage, at int) {
	own := p.bytes[at*v.Dims : (at+1)*v.Dims]
	Quantise(own, p.Bits[at*v.Words:(at+1)*v.Words])
	p.scale[at] = lengthOf(own)
	p.Blank &^= 1 << at
	if p.scale[at] == 0 {
		p.Blank |= 1 << at
	}
}
