package slash

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A word is one argument as typed.
type word struct {
	text string
	at   int // byte at which it begins in the line
	bare int // how many bytes at its beginning were written without quote or backslash
}

// is reports whether the word is exactly this, written plainly.
func (w word) is(text string) bool { return w.text == text && w.bare == len(text) }

// lexer takes a line apart. It never falls back to another reading.
type lexer struct {
	line   string
	at     int
	quote  byte // ' or ", 0 outside
	opened int
	words  []word

	start   int
	started bool   // a word has begun, perhaps an empty one in quotes
	bare    int    // -1 while the word is still plain and is the line from start on
	text    []byte // of a word that is not plain
}

// split parts line[from:] into words. Positions are those in the whole line.
func split(line string, from int) ([]word, *Fault) {
	l := lexer{line: line, at: from, bare: -1}
	for l.at < len(line) {
		if f := l.step(); f != nil {
			return nil, f
		}
		if len(l.words) > maxWords {
			return nil, faultAt(line, l.at, fmt.Sprintf("there are more than %d words", maxWords), "put them into a file and name the file")
		}
	}
	if l.quote != 0 {
		return nil, faultAt(line, l.opened, fmt.Sprintf("the quote %c that opens here never closes", l.quote), "close it, or write a backslash before it")
	}
	l.end()
	return l.words, nil
}

// step reads one character or escape.
func (l *lexer) step() *Fault {
	r, size := utf8.DecodeRuneInString(l.line[l.at:])
	if f := refuse(l.line, l.at, r, size, l.quote != 0); f != nil {
		return f
	}
	switch {
	case l.quote == 0 && (r == ' ' || r == '\t'):
		l.end()
	case l.quote == 0 && (r == '\'' || r == '"'):
		l.begin()
		l.notBare()
		l.quote, l.opened = byte(r), l.at
	case l.quote != 0 && r == rune(l.quote):
		l.quote = 0
	case r == '\\' && l.quote != '\'':
		return l.escape()
	default:
		if f := l.autocorrected(r); f != nil {
			return f
		}
		l.put(l.line[l.at : l.at+size])
	}
	l.at += size
	return nil
}

// autocorrected refuses what a phone or a word processor makes of quotes and
// dashes: the person meant the plain ones, and without them the line would
// fall into other words.
func (l *lexer) autocorrected(r rune) *Fault {
	if l.quote != 0 {
		return nil
	}
	switch r {
	case '“', '”', '„':
		return faultAt(l.line, l.at, "this is a typographer's quote", "type a plain \", or put plain quotes around the word")
	case '—', '–':
		if !l.started {
			return faultAt(l.line, l.at, "this dash is not the one that begins a flag", "type two plain dashes, or put quotes around the word")
		}
	}
	return nil
}

// escape reads a backslash and what it keeps. In double quotes it keeps only a
// quote and a backslash, and stands for itself elsewhere.
func (l *lexer) escape() *Fault {
	l.begin()
	if l.at+1 == len(l.line) {
		return faultAt(l.line, l.at, "the backslash at the end keeps nothing", "remove it, or write two")
	}
	r, size := utf8.DecodeRuneInString(l.line[l.at+1:])
	if l.quote == '"' && r != '"' && r != '\\' {
		l.put(`\`)
		l.at++
		return nil
	}
	if f := refuse(l.line, l.at+1, r, size, l.quote != 0); f != nil {
		return f
	}
	l.notBare()
	l.put(l.line[l.at+1 : l.at+1+size])
	l.at += 1 + size
	return nil
}

func (l *lexer) begin() {
	if !l.started {
		l.started, l.start = true, l.at
	}
}

// notBare marks where plain writing ends.
func (l *lexer) notBare() {
	if l.bare < 0 {
		l.bare = l.at - l.start
		l.text = append(l.text, l.line[l.start:l.at]...)
	}
}

func (l *lexer) put(s string) {
	l.begin()
	if l.bare >= 0 {
		l.text = append(l.text, s...)
	}
}

func (l *lexer) end() {
	switch {
	case !l.started:
	case l.bare < 0:
		l.words = append(l.words, word{text: l.line[l.start:l.at], at: l.start, bare: l.at - l.start})
	default:
		l.words = append(l.words, word{text: string(l.text), at: l.start, bare: l.bare})
	}
	l.text, l.started, l.bare = l.text[:0], false, -1
}

// refuse stops at what no argument may hold, and outside quotes at what looks
// like a blank or turns the line around.
func refuse(line string, at int, r rune, size int, quoted bool) *Fault {
	switch {
	case r >= ' ' && r < utf8.RuneSelf && r != 0x7f, r == '\t':
		return nil
	case r == utf8.RuneError && size <= 1:
		return faultAt(line, at, "this is not valid UTF-8", "type the character again")
	case r == '\n' || r == '\r' && strings.HasPrefix(line[at:], "\r\n"):
		if quoted {
			return nil
		}
		return faultAt(line, at, "the command goes on over a second line", "write it on one line, or put quotes around the argument with the line break")
	case unicode.IsControl(r):
		return faultAt(line, at, fmt.Sprintf("there is a control character, %U", r), "remove it")
	case quoted:
		return nil
	case unicode.IsSpace(r) || unicode.Is(unicode.Z, r) || invisible(r):
		return faultAt(line, at, fmt.Sprintf("%U looks like a blank, or like nothing, and is neither", r), "type a plain blank, or put quotes around the argument")
	case bidi(r):
		return faultAt(line, at, fmt.Sprintf("%U changes the order in which the line is shown", r), "remove it, or put quotes around the argument")
	}
	return nil
}

// invisible: characters without width that part nothing. The joiners of
// scripts and emoji are not among them.
func invisible(r rune) bool {
	switch r {
	case 0x00ad, 0x180e, 0x200b, 0x2060, 0x2800, 0x3164, 0xfeff:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f // tags
}

func bidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}
