package audit

import (
	"iter"
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

// mostLayers is how often a text may have been escaped and still be read: JSON
// within JSON, or an address within an address within an address.
const mostLayers = 3

// A layer is a text with its escapes read.
type layer struct {
	text string
	at   []int // where each byte, and the end, began in the text as it was at first
}

// layers yields a text as it is, and then with its escapes read, once more each
// time, while there are any.
func layers(s string) iter.Seq[layer] {
	return func(yield func(layer) bool) {
		l := layer{text: s}
		for range mostLayers - 1 {
			if !yield(l) || !hasEscape(l.text) {
				return
			}
			l = l.unescaped()
		}
		yield(l)
	}
}

// place returns the part of the first text that a part of the layer stands for.
func (l layer) place(from, to int) span {
	if l.at == nil {
		return span{from, to}
	}
	for to < len(l.text) && to > from && l.at[to] == l.at[to-1] { // in the middle of an escape
		to++
	}
	return span{l.at[from], l.at[to]}
}

// hasEscape reports whether a text has an escape that a layer reads.
func hasEscape(s string) bool {
	for i := strings.IndexAny(s, escapes); i >= 0; {
		if _, size, _ := unescapeLayer(s[i:]); size > 0 {
			return true
		}
		next := strings.IndexAny(s[i+1:], escapes)
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// unescapeLayer is unescape, but for \n, \r and \t: a letter after a backslash may
// be the first of a value.
func unescapeLayer(s string) (text string, size int, partial bool) {
	if len(s) > 1 && s[0] == '\\' && (s[1] == 'n' || s[1] == 'r' || s[1] == 't') {
		return "", 0, false
	}
	return unescape(s)
}

// unescaped returns the next layer. It ends before an escape that is not whole.
func (l layer) unescaped() layer {
	s := l.text
	out, at := make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	origin := func(i int) int {
		if l.at == nil {
			return i
		}
		return l.at[i]
	}
	i := 0
	for i < len(s) {
		text, size := s[i:i+1], 1
		if opensEscape(s[i]) {
			read, n, partial := unescapeLayer(s[i:])
			if partial {
				break
			}
			if n > 0 {
				text, size = read, n
			}
		}
		for range len(text) {
			at = append(at, origin(i))
		}
		out, i = append(out, text...), i+size
	}
	return layer{string(out), append(at, origin(i))}
}

// escaped calls found for the values held where some of their characters are
// written as escapes, as servers write them into error pages: sec%2Fret,
// sec\/ret, sec\u002fret, sec&#47;ret.
func (h *haystack) escaped(s string, found func(n needle, from, to int)) {
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
			if to, escape, _ := n.unescaped(s, i); to >= 0 && escape {
				found(n, i, to)
			}
		}
	}
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
			if c != rest[0] && (c != '+' || rest[0] != ' ') { // addresses may have + for a space
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
	end := 1
	for end < len(s) && end < longestEscape && (s[end] == '#' || wordAt(s, end)) {
		end++
	}
	if end == len(s) && end < longestEscape {
		return "", 0, true
	}
	if end == longestEscape || s[end] != ';' {
		return "", 0, false
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
