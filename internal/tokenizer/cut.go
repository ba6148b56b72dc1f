package tokenizer

import "unicode/utf8"

// cutExactly is the length in bytes of the longest piece in which Cut tries
// every character.
const cutExactly = 256

// Cut returns the longest prefix of text, ending between characters, that has at
// most max tokens by [Count]. A longer prefix can have fewer tokens than a
// shorter one, and Cut minds that; only where the cut falls into a word or a
// row of signs of more than 256 bytes does it fall between two of its tokens,
// and may then be some characters short of the longest. Cut reads no more of
// text than it needs: the prefix and the piece after it.
func Cut(text string, max int) string {
	if max <= 0 {
		return ""
	}
	var before span
	count := 0
	for start := 0; start < len(text); {
		end, broken := next(text, start)
		left := max - count
		n := (end - start + longest - 1) / longest // at least
		if n <= left {
			n = tokens(text[start:end], broken)
		}
		if n > left {
			return text[:cutWithin(text, before, span{start, end}, left)]
		}
		before = span{start, end}
		count += n
		start = end
	}
	return text
}

// A span of a text is one of its pieces.
type span struct{ start, end int }

// cutWithin returns the end of the longest prefix that has at most left tokens
// from last.start on, given that the piece last has more. before is the piece
// before it.
//
// A prefix has the pieces of the whole text up to the one it ends in, but for
// one case: whitespace before a word leaves its last character to that word,
// and keeps it if the word is cut off. There the number of tokens may sink.
func cutWithin(text string, before, last span, left int) int {
	fits := func(end int) bool { return Count(text[last.start:end]) <= left }
	if width := blankAt(text, last.end); width > 0 && blankAt(text, last.start) > 0 && fits(last.end+width) {
		return last.end + width
	}
	first := last.start // the end of a prefix that joins the two pieces
	if width := blankAt(text, last.start); width > 0 && blankAt(text, before.start) > 0 {
		first += width
	}
	if last.end > last.start+cutExactly {
		// Nothing further off can fit.
		last.end = boundary(text, min(last.end, last.start+left*longest))
		if end := last.start + cutLong(text[last.start:last.end], left); end > first {
			return end
		}
	} else {
		for end := last.end; end > first; end -= lastWidth(text[last.start:end]) {
			if fits(end) {
				return end
			}
		}
	}
	if first > last.start && Count(text[before.start:first]) <= Count(text[before.start:last.start])+left {
		return first
	}
	return last.start
}

// cutLong returns the end of a prefix of s with at most left tokens that ends, if
// no character is in the way, at the end of a token of s.
func cutLong(s string, left int) int {
	var ends []int
	for i := 0; i < len(s); {
		end, broken := next(s, i)
		ends = appendEnds(ends, s[i:end], i, broken)
		i = end
	}
	for n := min(left, len(ends)); n > 0; n-- {
		// A word may have other pieces once it is cut, so this needs a count.
		if end := boundary(s, ends[n-1]); Count(s[:end]) <= left {
			return end
		}
	}
	return 0
}

// appendEnds appends where the tokens of piece end in the text in which it
// begins at start.
func appendEnds(ends []int, piece string, start int, broken bool) []int {
	whole := piece
	if broken {
		whole = mend(piece)
	}
	at := parts(whole, nil)
	_, after := mergeLong(whole, at)
	seen, mended := 0, 0 // how far in piece and in whole
	for i := after[0]; ; i = after[i] {
		end := int(at[i])
		for broken && seen < len(piece) {
			r, width := utf8.DecodeRuneInString(piece[seen:])
			if mended+utf8.RuneLen(r) > end {
				break
			}
			seen += width
			mended += utf8.RuneLen(r)
		}
		if !broken {
			seen = end
		}
		ends = append(ends, start+seen)
		if end == len(whole) {
			return ends
		}
	}
}

// boundary returns the last place up to i that is not within a character.
func boundary(s string, i int) int {
	for back := 1; back < utf8.UTFMax && back <= i; back++ {
		if _, width := utf8.DecodeRuneInString(s[i-back:]); width > back {
			return i - back
		}
	}
	return i
}

// blankAt returns the width of the space at text[i] that is not a line end, or 0.
func blankAt(text string, i int) int {
	if i < len(text) {
		if c, width, _ := classAt(text, i); c == blank {
			return width
		}
	}
	return 0
}

func lastWidth(s string) int {
	_, width := utf8.DecodeLastRuneInString(s)
	return width
}
