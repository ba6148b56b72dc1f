package embed

import (
	"compress/flate"
	_ "embed"
	"io"
	"strings"
	"sync"
)

// packedChars is the table of all characters, compressed.
//
//go:embed chars.bin
var packedChars string

// charTable says what becomes of every character. It has, in this order, all
// numbers little-endian: for each 64 characters the number of their block
// (2 bytes each); the count of blocks (2 bytes); the blocks, an entry of 2
// bytes per character; and the targets, 4 bytes each. An entry is one of the
// four below, or mapped plus the place of its first target. A target is a
// character in its lowest 24 bits; the highest 8 bits of the first say how
// many there are.
//
// The table is what the reference tokenizer (Hugging Face tokenizers 0.23.2,
// BertNormalizer and BertPreTokenizer with lower-casing) did to each of the
// 1,112,064 characters, and not what the Unicode tables of this Go release
// say: those change from release to release, and vectors must not.
// testdata/README.md says how it was asked. Hangul syllables are not in the
// table, see [Model.Tokens]. Texts in ASCII need no table.
var charTable = sync.OnceValue(func() string {
	table, err := io.ReadAll(flate.NewReader(strings.NewReader(packedChars)))
	if err != nil {
		panic(err) // the file is a part of the program
	}
	return string(table)
})

// What becomes of a character.
const (
	self   = iota // part of a word, as it is
	drop          // gone, as if it had not been there
	space         // ends a word
	alone         // is a word of its own: punctuation, Chinese characters
	mapped        // from here on: replaced by its targets, none of them mapped again
)

const (
	blockSize = 64
	blocks    = 0x110000 / blockSize
	blocksAt  = 2*blocks + 2
)

// entryOf returns the entry of a character.
func entryOf(r rune) int {
	table := charTable()
	block := int(table[2*(r/blockSize)]) | int(table[2*(r/blockSize)+1])<<8
	at := blocksAt + 2*(block*blockSize+int(r%blockSize))
	return int(table[at]) | int(table[at+1])<<8
}

// targetsAt returns where the targets begin.
func targetsAt() int {
	table := charTable()
	count := int(table[2*blocks]) | int(table[2*blocks+1])<<8
	return blocksAt + 2*blockSize*count
}

// target returns the i-th character that a mapped entry becomes, and how many
// follow the first.
func target(entry, i int) (r rune, more int) {
	x := load32(charTable(), targetsAt()+4*(entry-mapped+i))
	return rune(x & (1<<24 - 1)), int(x>>24) - 1
}

// ascii is the same for the first 128 characters: drop, space, alone, or the
// lower-case letter or digit that the character becomes.
const ascii = "" +
	"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x02\x02\x01\x01\x02\x01\x01" +
	"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01" +
	"\x02\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03" +
	"0123456789\x03\x03\x03\x03\x03\x03" +
	"\x03abcdefghijklmnopqrstuvwxyz\x03\x03\x03\x03\x03" +
	"\x03abcdefghijklmnopqrstuvwxyz\x03\x03\x03\x03\x01"

// isHangul says whether a character is a Hangul syllable, which decomposes by
// arithmetic into two or three letters.
func isHangul(r rune) bool { return hangulBase <= r && r < hangulBase+hangulCount }

const (
	hangulBase, hangulCount       = 0xAC00, 11172
	leadBase, vowelBase, tailBase = 0x1100, 0x1161, 0x11A7
	vowels, tails                 = 21, 28
)

// jamo returns the letters of a Hangul syllable; tail is 0 if it has none.
func jamo(r rune) (lead, vowel, tail rune) {
	n := r - hangulBase
	lead, vowel = leadBase+n/(vowels*tails), vowelBase+n%(vowels*tails)/tails
	if n%tails != 0 {
		tail = tailBase + n%tails
	}
	return lead, vowel, tail
}
