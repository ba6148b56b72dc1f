package tokenizer

import "unicode/utf8"

// The encoding first cuts a text into pieces; no token crosses from one into
// the next. A piece is the first of these that fits where the last one ended:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
//
// The functions below say the same without backtracking, so that a text takes
// time in proportion to its length.

// A class is what the pattern needs to know of a character.
type class uint8

const (
	other class = iota // neither letter, mark, number nor space
	upper              // Lu, Lt: only in the first half of a word
	lower              // Ll: only in the second half
	both               // Lm, Lo: in either half
	mark               // M: in either half, and before a word, and among others
	number
	blank // a space that is not newline
	newline
)

// classAt returns the class and the width of the character at text[i]; broken
// says that it is a byte which is not UTF-8, and counts as U+FFFD.
func classAt(text string, i int) (c class, width int, broken bool) {
	if b := text[i]; b < utf8.RuneSelf {
		return class(classTable[b]), 1, false
	}
	r, width := utf8.DecodeRuneInString(text[i:])
	return classOf(r), width, r == utf8.RuneError && width == 1
}

// next returns the end of the piece that begins at text[i]; broken says that the
// piece has bytes that are not UTF-8.
func next(text string, i int) (end int, broken bool) {
	c, width, broken := classAt(text, i)
	after := i + width
	switch c {
	case upper, lower, both:
		end, _ := word(text, i)
		return contraction(text, end), false
	case number:
		return numbers(text, after), false
	case mark:
		// The mark is either what precedes a word or a word by itself.
		end, whole := word(text, after)
		if !whole {
			end = after
		}
		return contraction(text, end), false
	case newline:
		return spaces(text, i), false
	}
	if after == len(text) {
		return after, broken
	}
	if end, _ := word(text, after); end > after {
		return contraction(text, end), broken
	}
	if c == other {
		return others(text, after, broken)
	}
	if text[i] == ' ' {
		if c, width, broken := classAt(text, after); c == other {
			return others(text, after+width, broken)
		}
	}
	return spaces(text, i), false
}

// word returns the end of the letters and marks that the first two lines of the
// pattern take from text[i], and i if there are none. whole says that the first
// line takes them: that there is a character for its second half.
func word(text string, i int) (end int, whole bool) {
	last := i // the end of the last character that may stand in the second half
	for i < len(text) {
		c, width, _ := classAt(text, i)
		switch c {
		case lower:
			return tail(text, i+width), true
		case upper:
			i += width
			continue
		case both, mark:
			i += width
			last = i
			whole = true
			continue
		}
		break
	}
	if whole {
		return last, true
	}
	return i, false
}

// tail returns the end of the second half of a word, which goes on at text[i].
func tail(text string, i int) int {
	for {
		i = run(text, i, lower)
		if i == len(text) || text[i] < utf8.RuneSelf {
			return i // no letter or mark of ASCII may stand in both halves
		}
		c, width, _ := classAt(text, i)
		if c != lower && c != both && c != mark {
			return i
		}
		i += width
	}
}

// run returns the end of the ASCII characters of class c that go on at text[i].
func run(text string, i int, c class) int {
	for i < len(text) && text[i] < utf8.RuneSelf && class(classTable[text[i]]) == c {
		i++
	}
	return i
}

// contraction returns the end of an English contraction at text[i], or i.
func contraction(text string, i int) int {
	if i+1 >= len(text) || text[i] != '\'' {
		return i
	}
	const fold = 'a' - 'A'
	second := byte(0)
	switch text[i+1] | fold {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		second = 'e'
	case 'l':
		second = 'l'
	case 0xE5: // 0xC5|fold: the long s, which is an s where case does not matter
		if text[i+1:min(len(text), i+3)] == "ſ" {
			return i + 3
		}
	}
	if second != 0 && i+2 < len(text) && text[i+2]|fold == second {
		return i + 3
	}
	return i
}

// numbers returns the end of the at most two numbers that go on at text[i].
func numbers(text string, i int) int {
	for n := 1; n < 3 && i < len(text); n++ {
		c, width, _ := classAt(text, i)
		if c != number {
			break
		}
		i += width
	}
	return i
}

// others returns the end of signs that go on at text[i], with the line ends and
// slashes after them.
func others(text string, i int, broken bool) (int, bool) {
	for i < len(text) {
		c, width, bad := classAt(text, i)
		if c != other && c != mark {
			break
		}
		i += width
		broken = broken || bad
	}
	for i < len(text) && (text[i] == '\n' || text[i] == '\r' || text[i] == '/') {
		i++
	}
	return i, broken
}

// spaces returns the end of the piece of whitespace that begins at text[i]: after
// its last line end; else before its last character, which goes with what
// follows, if something does and the piece has more than that one.
func spaces(text string, i int) int {
	start, last, line := i, i, i
	for i < len(text) {
		c, width, _ := classAt(text, i)
		if c != blank && c != newline {
			break
		}
		last = i
		i += width
		if c == newline {
			line = i
		}
	}
	switch {
	case line > start:
		return line
	case i < len(text) && last > start:
		return last
	}
	return i
}
