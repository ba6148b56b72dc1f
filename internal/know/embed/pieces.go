package embed

import "math/bits"

// A slot of the hash table has 4 bytes: 0 if it is empty, else one more than
// the number of a piece, and above that a tag of its hash. A piece lies in the
// slot that the top bits of its hash name, or in the first free one after it.
const idBits, tagBits = 18, 14

// Pieces that begin a word and pieces that continue one are found by hashes of
// different seeds.
const beginSeed, continueSeed = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03

// continued is before the pieces that continue a word.
const continued = "##"

// find returns the number of a piece, and Unknown if there is none. The prefix is
// empty or continued.
func (m *Model) find(text []byte, prefix string) uint32 {
	seed := uint64(beginSeed)
	if prefix != "" {
		seed = continueSeed
	}
	h := hash(text, seed)
	last := len(m.slots)/4 - 1
	for at := int(h >> m.shift); ; at = (at + 1) & last {
		slot := load32(m.slots, 4*at)
		if slot == 0 {
			return Unknown
		}
		if slot>>idBits != tag(h) {
			continue
		}
		id := slot&(1<<idBits-1) - 1
		if p := m.piece(id); len(p) == len(prefix)+len(text) && p[:len(prefix)] == prefix && p[len(prefix):] == string(text) {
			return id
		}
	}
}

// piece returns the text of a piece that exists.
func (m *Model) piece(id uint32) string {
	return m.strings[load32(m.offsets, 4*int(id)):load32(m.offsets, 4*int(id)+4)]
}

// tag returns the bits of a hash that a slot keeps.
func tag(h uint64) uint32 { return uint32(h & (1<<tagBits - 1)) }

// hash mixes bytes into 64 bits. Model files depend on it: a change of it needs a
// new version of the format.
func hash(s []byte, seed uint64) uint64 {
	const k = 0x8CB92BA72F3D8DD7
	h := seed + uint64(len(s))
	for ; len(s) > 16; s = s[16:] {
		h = mix(load64(s, 0)^h, load64(s, 8)^k)
	}
	var a, b uint64
	switch n := len(s); {
	case n >= 8:
		a, b = load64(s, 0), load64(s, n-8)
	case n >= 4:
		a, b = uint64(load32(s, 0)), uint64(load32(s, n-4))
	case n > 0:
		a, b = uint64(s[0])|uint64(s[n/2])<<8|uint64(s[n-1])<<16, 0
	}
	return mix(a^h, b^k)
}

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// The loads read little-endian numbers; the compiler makes one instruction of
// each.

func load16[T string | []byte](s T, at int) uint16 {
	s = s[at : at+2]
	return uint16(s[0]) | uint16(s[1])<<8
}

func load32[T string | []byte](s T, at int) uint32 {
	s = s[at : at+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func load64[T string | []byte](s T, at int) uint64 {
	s = s[at : at+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
