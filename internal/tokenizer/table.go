package tokenizer

import (
	_ "embed"
	"math/bits"
	"unicode/utf8"
)

// vocabulary holds the tokens: the pairs of bytes, the single characters, a
// perfect hash of all of them (displacements and slots), and their bytes. It is a string, because
// those stay in read-only pages.
//
//go:embed o200k.bin
var vocabulary string

// classTable holds the class of every character: blocks of 128, the first of
// them ASCII, then for each 128 characters the number of their block.
//
//go:embed classes.bin
var classTable string

const (
	// none is the rank of bytes that are no token.
	none = 1<<18 - 1

	// longest is the length of the longest token in bytes.
	longest = 128

	// A slot of 64 bits has, from the lowest bit, a tag of the token's hash,
	// the place and the length of its bytes, and its rank.
	tagBits, placeBits, lengthBits = 18, 20, 8

	// A bucket takes 2 bytes, its displacement; a slot takes 8.
	buckets, slots = 50_000, 204_800

	// Where the parts of the vocabulary begin.
	pairsAt         = 0
	charsAt         = pairsAt + 4<<16
	displacementsAt = charsAt + chars/8
	slotsAt         = displacementsAt + 2*buckets
	bytesAt         = slotsAt + 8*slots

	// chars is how many characters have a bit that says whether they are tokens.
	chars = 0x20000

	// classBlocks is the number of blocks of 128 characters.
	classBlocks = (utf8.MaxRune + 1) / 128
)

// classOf returns the class of a character.
func classOf(r rune) class {
	block := classTable[len(classTable)-classBlocks+int(r>>7)]
	return class(classTable[int(block)<<7|int(r&127)])
}

// rank returns the rank of a token, and none if bytes are no token. Two tokens
// side by side become one if their bytes together have a rank; of several such
// pairs, the one with the lowest rank goes first.
func rank(bytes string) uint32 {
	if len(bytes) > longest {
		return none
	}
	h := hash(bytes)
	bucket := h >> 32 * buckets >> 32
	displacement := uint32(vocabulary[displacementsAt+2*bucket]) | uint32(vocabulary[displacementsAt+2*bucket+1])<<8
	slot := load64(vocabulary, slotsAt+8*slotOf(h, displacement))
	if (slot^tag(h))&(1<<tagBits-1) != 0 {
		return none
	}
	place := slot >> tagBits & (1<<placeBits - 1)
	length := slot >> (tagBits + placeBits) & (1<<lengthBits - 1)
	if vocabulary[bytesAt+place:bytesAt+place+length] != bytes {
		return none
	}
	return uint32(slot >> (tagBits + placeBits + lengthBits))
}

// slotOf returns the number of the slot of a hash whose bucket has displacement.
func slotOf(h uint64, displacement uint32) uint64 {
	return uint64(uint32(h)+displacement*(uint32(h>>32)|1)) * slots >> 32
}

// tag returns the bits of a hash that a slot keeps. They are taken from the
// middle, as the top chooses the bucket.
func tag(h uint64) uint64 { return h >> 14 & (1<<tagBits - 1) }

// pair returns the rank of two bytes.
func pair(a, b byte) uint32 { return pairEntry(a, b) & none }

// torn says that a token exists in which byte b follows byte a, with b beginning
// a character, and that begins or ends within a character.
func torn(a, b byte) bool { return pairEntry(a, b)&tornPair != 0 }

// tornPair is the bit of a pair beside its rank.
const tornPair = 1 << 31

func pairEntry(a, b byte) uint32 {
	return load32(vocabulary, pairsAt+4*(int(a)<<8|int(b)))
}

// isToken reports whether a character is a token.
func isToken(r rune) bool {
	if r >= chars {
		return rank(string(r)) != none
	}
	return vocabulary[charsAt+r>>3]>>(r&7)&1 != 0
}

// hash mixes at most [longest] bytes into 64 bits. The tables are built with
// it: rebuild them after a change.
func hash(s string) uint64 {
	const k0, k1, k2 = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x8CB92BA72F3D8DD7
	h := uint64(len(s)) * k0
	for len(s) > 16 {
		h = mix(load64(s, 0)^h^k1, load64(s, 8)^k2)
		s = s[16:]
	}
	var a, b uint64
	switch n := len(s); {
	case n >= 8:
		a, b = load64(s, 0), load64(s, uint64(n)-8)
	case n >= 4:
		a, b = uint64(load32(s, 0)), uint64(load32(s, n-4))
	case n > 0:
		a = uint64(s[0])<<16 | uint64(s[n>>1])<<8 | uint64(s[n-1])
	}
	return mix(a^h^k1, b^k2)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func load64(s string, at uint64) uint64 {
	b := s[at : at+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func load32(s string, at int) uint32 {
	b := s[at : at+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}
