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
		for _, b := range s.VectorStore.row(s.VectorStore.Pages[slot/VectorsPerPage], at) {
			out = append(out, byte(b))
		}
	}
	codes := 0
	for i := range s.Docs {
		codes += len(s.Docs[i].nameCodes)
	}
	out = padded(binary.LittleEndian.AppendUint32(out, uint32(codes)), 8)
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
	if rows, ok := inPlace[int8](all); ok && r.mapped {
		s.VectorStore.kept = rows
	}
	s.VectorStore.fill(all, at, n)
	count := r.length(8)
	r.pad(8)
	raw := r.bytes(8 * count)
	if r.bad {
		return nil, false
	}
	if list, ok := inPlace[uint64](raw); ok && r.mapped {
		return list, true
	}
	codes = make([]uint64, count)
	for i := range codes {
		codes[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return codes, true
}

// fill sets the vectors of the slots in at, of n, to those in bytes. Where these are
// kept, they are not copied.
func (v *Vectors) fill(bytes []byte, at []int32, n int) {
	for range (n + VectorsPerPage - 1) / VectorsPerPage {
		p := &vectorPage{Bits: make([]uint64, v.Words*VectorsPerPage)}
		if v.kept == nil {
			p.bytes = make([]int8, v.Dims*VectorsPerPage)
		}
		v.Pages = append(v.Pages, p)
	}
	for i, slot := range at {
		if slot < 0 {
			continue
		}
		p, at := v.Pages[slot/VectorsPerPage], int(slot%VectorsPerPage)
		if v.kept != nil {
			p.kept[at] = int32(i + 1)
		} else {
			own := p.bytes[at*v.Dims : (at+1)*v.Dims]
			for j, b := range bytes[i*v.Dims : (i+1)*v.Dims] {
				own[j] = int8(b)
			}
		}
		p.Has |= 1 << at
		v.n++
		v.derive(p, at)
	}
}

// derive makes what follows from the bytes of a slot: its signs and its length.
func (v *Vectors) derive(p *vectorPage, at int) {
	own := v.row(p, at)
	Quantise(own, p.Bits[at*v.Words:(at+1)*v.Words])
	p.scale[at] = lengthOf(own)
	p.Blank &^= 1 << at
	if p.scale[at] == 0 {
		p.Blank |= 1 << at
	}
}
