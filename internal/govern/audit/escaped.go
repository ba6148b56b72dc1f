package audit

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes are the characters with which an escape begins: in addresses and
// forms, in JSON and program text, in HTML.
const escapes = `%\&`

func opensEscape(c byte) bool { return c == '%' || c == '\\' || c == '&' }

// longestEscape is the length of the longest escape, a pair of \u escapes.
const longestEscape = 12

// escaped finds the values held where some of their characters are written as
// escapes, as servers write them into error pages: sec%2Fret, sec\/ret,
// sec\u002fret, sec&#47;ret. One that no escape is in is found by exact.
func (h *haystack) escaped(s string, spans []span) []span {
	next := strings.IndexAny(s, escapes)
	for i := 0; next >= 0 && i < len(s); i++ {
		if i > next {
			step := strings.IndexAny(s[i:], escapes)
			if step < 0 {
				break
			}
			next = i + step
		}
		i = max(i, next-h.longest) // nothing before reaches an escape
		pair, have := pairUnescaped(s, i)
		if have < 2 || !h.starts.has(pair[0], pair[1]) {
			continue
		}
		for _, n := range h.by[uint16(pair[0])<<8|uint16(pair[1])] {
			to, escape, _ := n.unescaped(s, i)
			if to < 0 || !escape || n.word && (wordAt(s, i-1) || wordAt(s, to)) {
				continue
			}
			spans = append(spans, span{i, to})
		}
	}
	return spans
}

// unescaped compares a text from a byte on with the needle, and reads escapes as
// what they stand for. It returns where the needle ends, or -1, whether there was
// an escape, and whether the text ended before the needle did.
func (n needle) unescaped(s string, i int) (to int, escaped, open bool) {
	for rest := n.text; rest != ""; {
		if i >= len(s) {
			return -1, escaped, true
		}
		if c := s[i]; !opensEscape(c) {
			if c != rest[0] {
				return -1, escaped, false
			}
			rest, i = rest[1:], i+1
			continue
		}
		text, size, partial := unescape(s[i:])
		switch {
		case size > 0 && strings.HasPrefix(rest, text):
			rest, i, escaped = rest[len(text):], i+size, true
		case s[i] == rest[0]:
			rest, i = rest[1:], i+1
		default:
			return -1, escaped, partial
		}
	}
	return i, escaped, false
}

// pairUnescaped returns the two bytes that a text stands for at a place, or fewer
// where it ends before, or in the middle of an escape.
func pairUnescaped(s string, i int) (pair [2]byte, have int) {
	if i+1 < len(s) && !opensEscape(s[i]) && !opensEscape(s[i+1]) {
		return [2]byte{s[i], s[i+1]}, 2
	}
	for have < 2 && i < len(s) {
		text, size, partial := unescape(s[i:])
		if partial {
			break
		}
		if size == 0 {
			text, size = s[i:i+1], 1
		}
		have += copy(pair[have:], text)
		i += size
	}
	return pair, have
}

// unescape returns the text that the escape at the beginning of s stands for and
// how long the escape is, or 0. partial says that s may be the beginning of one.
func unescape(s string) (text string, size int, partial bool) {
	switch s[0] {
	case '%':
		if len(s) < 3 {
			return "", 0, true
		}
		if b, ok := hexByte(s[1:3]); ok {
			return b, 3, false
		}
	case '\\':
		return unescapeBackslash(s)
	case '&':
		return unescapeEntity(s)
	}
	return "", 0, false
}

func hexByte(s string) (string, bool) {
	n, err := strconv.ParseUint(s, 16, 8)
	return string([]byte{byte(n)}), err == nil
}

func unescapeBackslash(s string) (text string, size int, partial bool) {
	if len(s) < 2 {
		return "", 0, true
	}
	switch s[1] {
	case '/', '"', '\'', '\\':
		return s[1:2], 2, false
	case 'n':
		return "\n", 2, false
	case 'r':
		return "\r", 2, false
	case 't':
		return "\t", 2, false
	case 'x':
		if len(s) < 4 {
			return "", 0, true
		}
		if b, ok := hexByte(s[2:4]); ok {
			return b, 4, false
		}
	case 'u':
		if len(s) < 6 {
			return "", 0, true
		}
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		if err != nil {
			return "", 0, false
		}
		if r := rune(n); !utf16.IsSurrogate(r) {
			return string(r), 6, false
		}
		if len(s) < longestEscape {
			return "", 0, true
		}
		low, err := strconv.ParseUint(s[8:12], 16, 16)
		if r := utf16.DecodeRune(rune(n), rune(low)); err == nil && s[6:8] == `\u` && r != utf8.RuneError {
			return string(r), longestEscape, false
		}
	}
	return "", 0, false
}

func unescapeEntity(s string) (text string, size int, partial bool) {
	end := strings.IndexByte(s[:min(len(s), longestEscape)], ';')
	if end < 0 {
		return "", 0, len(s) < longestEscape
	}
	name := s[1:end]
	switch name {
	case "amp":
		return "&", end + 1, false
	case "lt":
		return "<", end + 1, false
	case "gt":
		return ">", end + 1, false
	case "quot":
		return `"`, end + 1, false
	case "apos":
		return "'", end + 1, false
	}
	digits, isNumber := strings.CutPrefix(name, "#")
	base := 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, base = hex, 16
	}
	if n, err := strconv.ParseUint(digits, base, 21); isNumber && err == nil && utf8.ValidRune(rune(n)) {
		return string(rune(n)), end + 1, false
	}
	return "", 0, false
}

// openEscaped is open for values with escapes in them.
func (h *haystack) openEscaped(s string) int {
	for i := max(0, len(s)-longestEscape*h.longest); i < len(s); i++ {
		pair, have := pairUnescaped(s, i)
		switch {
		case have == 0, have == 1 && h.first[pair[0]]:
			return i
		case have == 1 || !h.starts.has(pair[0], pair[1]):
			continue
		}
		for _, n := range h.by[uint16(pair[0])<<8|uint16(pair[1])] {
			if _, _, open := n.unescaped(s, i); open {
				return i
			}
		}
	}
	return len(s)
}
