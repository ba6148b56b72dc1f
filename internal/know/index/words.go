package index

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Token is one word of a text, lowered, not stemmed.
type Token struct {
	Text string
	// Joined is how many tokens after this one are its own pieces: "GitHub"
	// gives github with two pieces, git and hub.
	Joined int
	Clause int  // which clause of the text it stands in
	Digits bool // a number
	Pair   bool // two characters of a script without spaces
}

// AppendTokens splits text into words. Identifiers are taken apart at case
// changes, digits and punctuation; a word with case changes inside is given
// whole before its pieces. Scripts without spaces give overlapping pairs of
// characters. Stop words are among the tokens.
func AppendTokens(out []Token, text string) []Token {
	clause := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case isLetter(r):
			end := lettersEnd(text, i+size)
			if end < len(text) && isDigit(text[end]) { // else there is no digit beside a letter
				if mixed := mixedEnd(text, i); mixed > i {
					out = appendMixed(out, text[i:mixed], clause)
					i = mixed
					continue
				}
			}
			out = appendLetters(out, text[i:end], clause)
			i = end
		case unspaced(r):
			end := i + size
			for end < len(text) {
				r, size := runeAt(text, end)
				if !unspaced(r) && !unicode.IsMark(r) {
					break
				}
				end += size
			}
			out = appendPairs(out, text[i:end], clause)
			i = end
		case '0' <= r && r <= '9' || r >= utf8.RuneSelf && unicode.IsDigit(r):
			if mixed := mixedEnd(text, i); mixed > i {
				out = appendMixed(out, text[i:mixed], clause)
				i = mixed
				continue
			}
			end := i + size
			for end < len(text) {
				r, size := runeAt(text, end)
				if !unicode.IsDigit(r) {
					break
				}
				end += size
			}
			out = append(out, Token{Text: text[i:end], Clause: clause, Digits: true})
			i = end
		default:
			if endsClause(r) && (r == '\n' || r >= utf8.RuneSelf || i+size == len(text) || text[i+size] <= ' ') {
				clause++
			}
			i += size
		}
	}
	return out
}

// lettersEnd finds where the letters from i on end.
func lettersEnd(text string, i int) int {
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf { // no mark is one
			if !letterByte[b] {
				break
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isLetter(r) && !unicode.IsMark(r) {
			break
		}
		i += size
	}
	return i
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// mostMixed is the length up to which letters and digits side by side are a
// word of their own: s3, k8s, base64.
const mostMixed = 8

// mixedEnd finds the end of such a word; i where none begins there.
func mixedEnd(text string, i int) int {
	if i > 0 && (isLetter(rune(text[i-1])) || '0' <= text[i-1] && text[i-1] <= '9') {
		return i
	}
	end, letters, digits := i, 0, 0
	for ; end < len(text); end++ {
		switch b := text[end]; {
		case '0' <= b && b <= '9':
			digits++
		case 'a' <= b|0x20 && b|0x20 <= 'z':
			letters++
		case b >= utf8.RuneSelf:
			return i
		default:
			if letters == 0 || digits == 0 || end-i > mostMixed {
				return i
			}
			return end
		}
		if end-i >= mostMixed {
			return i
		}
	}
	if letters == 0 || digits == 0 {
		return i
	}
	return end
}

// appendMixed adds letters and digits that are written as one: the whole, then
// its pieces but for single letters.
func appendMixed(out []Token, run string, clause int) []Token {
	whole := len(out)
	out = append(out, Token{Text: strings.ToLower(run), Clause: clause})
	for i := 0; i < len(run); {
		end := i + 1
		if digit := run[i] <= '9'; digit {
			for end < len(run) && run[end] <= '9' {
				end++
			}
			out = append(out, Token{Text: run[i:end], Clause: clause, Digits: true})
		} else {
			end = lettersEnd(run, end)
			if end-i > 1 {
				out = append(out, Token{Text: strings.ToLower(run[i:end]), Clause: clause})
			}
		}
		i = end
	}
	out[whole].Joined = len(out) - whole - 1
	return out
}

func runeAt(text string, i int) (rune, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return rune(b), 1
	}
	return utf8.DecodeRuneInString(text[i:])
}

// isLetter reports letters of scripts that put spaces between words.
func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r) && !unspaced(r)
}

// letterByte holds the letters of ASCII.
var letterByte = func() (is [utf8.RuneSelf]bool) {
	for b := range is {
		is[b] = isLetter(rune(b))
	}
	return is
}()

func endsClause(r rune) bool {
	switch r {
	case '.', '!', '?', ';', ',', ':', '\n', '。', '、', '，', '！', '？', '；':
		return true
	}
	return false
}

// appendLetters adds a run of letters: as a whole, and in pieces where its
// case changes ("getHTTPPage" is get, HTTP, Page).
func appendLetters(out []Token, run string, clause int) []Token {
	plain := true
	for i := 1; i < len(run); i++ {
		if 'A' <= run[i] && run[i] <= 'Z' || run[i] >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		if first := run[0]; first < 'a' || 'z' < first { // else it is lower already
			run = strings.ToLower(run)
		}
		return append(out, Token{Text: run, Clause: clause})
	}
	if acronyms(run) {
		return append(out, Token{Text: strings.ToLower(run[:len(run)-1]), Clause: clause})
	}
	whole := len(out)
	out = append(out, Token{Text: strings.ToLower(run), Clause: clause})
	for start := 0; start < len(run); {
		end := pieceEnd(run, start)
		if start == 0 && end == len(run) {
			break
		}
		out = append(out, Token{Text: strings.ToLower(run[start:end]), Clause: clause})
		start = end
	}
	out[whole].Joined = len(out) - whole - 1
	return out
}

// acronyms reports the plural of an acronym: PRs, APIs.
func acronyms(run string) bool {
	for i := range len(run) - 1 {
		if run[i] < 'A' || run[i] > 'Z' {
			return false
		}
	}
	return len(run) > 2 && run[len(run)-1] == 's'
}

func pieceEnd(run string, start int) int {
	before, size := utf8.DecodeRuneInString(run[start:])
	i := start + size
	for i < len(run) {
		r, size := utf8.DecodeRuneInString(run[i:])
		if unicode.IsUpper(r) {
			if !unicode.IsUpper(before) {
				break // aB
			}
			if next, _ := utf8.DecodeRuneInString(run[i+size:]); unicode.IsLower(next) {
				break // the B of ABc begins a piece
			}
		}
		if !unicode.IsMark(r) { // an accent is part of the letter before it
			before = r
		}
		i += size
	}
	return i
}

func appendPairs(out []Token, run string, clause int) []Token {
	_, first := utf8.DecodeRuneInString(run)
	if first == len(run) {
		return append(out, Token{Text: run, Clause: clause, Pair: true})
	}
	for i := 0; i+first < len(run); {
		_, second := utf8.DecodeRuneInString(run[i+first:])
		out = append(out, Token{Text: run[i : i+first+second], Clause: clause, Pair: true})
		i, first = i+first, second
	}
	return out
}

func unspaced(r rune) bool {
	if r < 0x0E00 {
		return false
	}
	if r == 'ー' || r == 'ｰ' { // which Unicode gives to no one script
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
