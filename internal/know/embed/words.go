package embed

import "unicode/utf8"

// longestWord is how many characters a word may have; a longer one is Unknown.
const longestWord = 100

// Tokens adds the tokens of a text to dst, at most [MaxTokens] of them. It
// allocates nothing if dst has room for 100 more than that.
//
// It does what BERT's tokenizer for lower-cased text does, without [CLS] and
// [SEP]: control characters go, accents go, letters become lower case; white
// space ends a word, punctuation and Chinese characters are words of their own;
// and of a word the longest piece that the vocabulary has is taken from the
// front, again and again, or the whole word is [Unknown]. What looks like
// [MASK] or another special token is text like any other. Bytes that are no
// UTF-8 are dropped.
func (m *Model) Tokens(dst []uint32, text string) []uint32 { return m.tokens(dst, []byte(text)) }

// tokens is Tokens. It does not change the text, so Tokens makes no copy of it.
func (m *Model) tokens(dst []uint32, text []byte) []uint32 {
	limit := len(dst) + MaxTokens
	var w word
	for i := 0; i < len(text) && len(dst) < limit; {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[i:])
			i += size
			dst = m.char(dst, &w, r)
			continue
		}
		i++
		switch c = ascii[c]; c {
		case drop:
		case space:
			dst = m.end(dst, &w)
		case alone:
			dst = m.end(dst, &w)
			w.addByte(text[i-1])
			dst = m.end(dst, &w)
		default:
			w.addByte(c)
		}
	}
	dst = m.end(dst, &w)
	return dst[:min(len(dst), limit)]
}

// char adds a character outside ASCII to the word, and the tokens of the words
// that it ends to dst.
func (m *Model) char(dst []uint32, w *word, r rune) []uint32 {
	if isHangul(r) {
		lead, vowel, tail := jamo(r)
		w.add(lead)
		w.add(vowel)
		if tail != 0 {
			w.add(tail)
		}
		return dst
	}
	entry := entryOf(r)
	if entry < mapped {
		return m.plain(dst, w, r, entry)
	}
	for i, more := 0, 0; i <= more; i++ {
		to, others := target(entry, i)
		if i == 0 {
			more = others
		}
		dst = m.plain(dst, w, to, min(entryOf(to), mapped))
	}
	return dst
}

// plain is char for a character that becomes nothing else.
func (m *Model) plain(dst []uint32, w *word, r rune, entry int) []uint32 {
	switch entry {
	case drop:
	case space:
		dst = m.end(dst, w)
	case alone:
		dst = m.end(dst, w)
		w.add(r)
		dst = m.end(dst, w)
	default:
		w.add(r)
	}
	return dst
}

// A word is the characters since the last word ended.
type word struct {
	text  [longestWord * utf8.UTFMax]byte
	bytes int
	chars int // at most one more than longestWord; then text is not to be read
}

func (w *word) addByte(c byte) {
	if w.chars >= longestWord {
		w.chars = longestWord + 1
		return
	}
	w.text[w.bytes] = c
	w.bytes++
	w.chars++
}

func (w *word) add(r rune) {
	if w.chars >= longestWord {
		w.chars = longestWord + 1
		return
	}
	w.bytes += utf8.EncodeRune(w.text[w.bytes:], r)
	w.chars++
}

// end adds the tokens of the word to dst and makes the word empty.
func (m *Model) end(dst []uint32, w *word) []uint32 {
	if w.chars == 0 {
		return dst
	}
	text := w.text[:w.bytes]
	spelt := w.chars <= longestWord
	w.bytes, w.chars = 0, 0
	if !spelt {
		return append(dst, Unknown)
	}
	before, prefix := len(dst), ""
	for len(text) > 0 {
		id, size := m.longestPiece(text, prefix)
		if id == Unknown {
			return append(dst[:before], Unknown)
		}
		dst = append(dst, id)
		text, prefix = text[size:], continued
	}
	return dst
}

// longestPiece returns the longest piece that a text begins with, and its bytes.
func (m *Model) longestPiece(text []byte, prefix string) (id uint32, size int) {
	for size = min(len(text), m.longest); size > 0; size-- {
		if size < len(text) && !utf8.RuneStart(text[size]) {
			continue
		}
		if id = m.find(text[:size], prefix); id != Unknown {
			return id, size
		}
	}
	return Unknown, 0
}
