package card

import (
	"iter"
	"unicode/utf8"
)

// maxPhrase is the most words of a phrase; longer keywords are looked for
// literally.
const maxPhrase = 8

// wordsOf yields the words of a folded text.
func wordsOf(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := 0; at < len(text); {
			start, end := nextWord(text, at)
			if start == end || !yield(text[start:end]) {
				return
			}
			at = end
		}
	}
}

// nextWord gives the first word from at on; start and end are equal when there
// is none. The text is folded.
func nextWord(text []byte, at int) (start, end int) {
	for at < len(text) {
		if b := text[at]; b < utf8.RuneSelf {
			if isPlain(b) {
				break
			}
			at++
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		if isWord(r) {
			break
		}
		at += size
	}
	start = at
	for at < len(text) {
		if b := text[at]; b < utf8.RuneSelf {
			if !isPlain(b) {
				break
			}
			at++
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		if !isWord(r) {
			break
		}
		at += size
	}
	return start, at
}

// isPlain reports the letters and digits of a folded ASCII text.
func isPlain(b byte) bool { return b-'a' < 26 || b-'0' < 10 }

func runeAt(text []byte, at int) (rune, int) {
	if b := text[at]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRune(text[at:])
}

// A vocabulary knows the stems of all keywords, and which of them in a row make
// a concept.
type vocabulary struct {
	stems map[string]int32
	after map[step]int32 // the node after a node and a stem; node 0 is the start
	ends  []int32        // by node, the concept that ends there, or -1

	// starts has a bit for the first two bytes of every stem. Stemming leaves
	// those of a word alone, so most words are passed over without it.
	starts [1 << 16 / 64]uint64
}

// startOf gives the bit of a word or a stem.
func startOf(word []byte) (at int, bit uint64) {
	n := int(word[0]) << 8
	if len(word) > 1 {
		n |= int(word[1])
	}
	return n / 64, 1 << (n % 64)
}

func (v *vocabulary) mayKnow(word []byte) bool {
	at, bit := startOf(word)
	return v.starts[at]&bit != 0
}

type step struct{ node, stem int32 }

func newVocabulary() vocabulary {
	return vocabulary{stems: map[string]int32{}, after: map[step]int32{}, ends: []int32{-1}}
}

func (v *vocabulary) add(stems []string, concept int32) {
	at := int32(0)
	for _, stem := range stems {
		id, ok := v.stems[stem]
		if !ok {
			id = int32(len(v.stems))
			v.stems[stem] = id
			at, bit := startOf([]byte(stem))
			v.starts[at] |= bit
		}
		next, ok := v.after[step{at, id}]
		if !ok {
			next = int32(len(v.ends))
			v.after[step{at, id}] = next
			v.ends = append(v.ends, -1)
		}
		at = next
	}
	v.ends[at] = concept
}
