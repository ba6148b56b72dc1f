package tokenizer

import "unicode/utf8"

// Estimate returns an upper estimate of the tokens of a text for a model whose
// tokens are unknown. It goes by classes of characters, with weights that were at
// or above what cl100k_base, an older vocabulary, needs for prose, code and data,
// and is never below [Count]. Classes alone could not guarantee the latter and
// stay accurate, since they cannot tell a word from letters in an unusual order;
// so Estimate counts as well. It is never above one token for each byte (three for a byte that is not UTF-8), which no encoding that starts
// from bytes exceeds. English prose comes to about 1.3 times Count, JSON to 2,
// scripts that older vocabularies neglect to between 2 and 7.
func Estimate(text string) int { return max(Count(text), byClasses(text)) }

// Weights, in quarters of a token.
const (
	oneToken   = 4
	ideograph  = 6  // and kana, Hangul, Greek, Hebrew, Arabic
	twoBytes   = 8  // Armenian, Syriac, combining marks
	threeBytes = 10 // Indic scripts, Thai, Georgian, symbols
	fourBytes  = 12 // emoji, rare ideographs
	brokenByte = 12

	wordLetters = 5 // letters of an ASCII word to a token
	blanks      = 4 // characters of indentation to a token
)

func byClasses(text string) int {
	quarters := 0
	for i := 0; i < len(text); {
		b := text[i]
		if b >= utf8.RuneSelf {
			r, width := utf8.DecodeRuneInString(text[i:])
			quarters += weight(r, width)
			i += width
			continue
		}
		start := i
		i++
		switch class(classTable[b]) {
		case upper:
			i = run(text, i, upper) // HTTP, or the first letter of a Word
			i = run(text, i, lower)
			quarters += (i - start + wordLetters - 1) / wordLetters * oneToken
		case lower:
			i = run(text, i, lower)
			quarters += (i - start + wordLetters - 1) / wordLetters * oneToken
		case blank:
			i = run(text, i, blank)
			if n := i - start; n > 1 || b != ' ' || i == len(text) || text[i] >= utf8.RuneSelf { // else part of a word
				quarters += (n + blanks - 1) / blanks * oneToken
			}
		default:
			quarters += oneToken
		}
	}
	return (quarters + oneToken - 1) / oneToken
}

// weight returns the quarters of a token for a character beyond ASCII.
func weight(r rune, width int) int {
	switch {
	case width == 1:
		return brokenByte
	case r < 0x300 || r >= 0x400 && r < 0x530 || r>>8 == 0x20: // Latin, Cyrillic, dashes and quotation marks
		return oneToken
	case r >= 0x370 && r < 0x400 || r >= 0x590 && r < 0x700: // Greek, Hebrew, Arabic
		return ideograph
	case width == 2:
		return twoBytes
	case width == 4:
		return fourBytes
	case r >= 0x2E80 && r < 0xE000 || r >= 0xF900 && r < 0xFB00 || r >= 0xFF00:
		return ideograph
	}
	return threeBytes
}
