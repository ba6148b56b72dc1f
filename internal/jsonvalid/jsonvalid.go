// Package jsonvalid checks JSON text. It takes about a fifth of the time of
// encoding/json, whose scanner calls a function for every byte.
package jsonvalid

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// maxDepth is encoding/json's own bound.
const maxDepth = 10_000

// Valid reports whether data is one JSON value, exactly as [json.Valid] does.
func Valid(data []byte) bool {
	at := value(data, space(data, 0), 0)
	return at >= 0 && space(data, at) == len(data)
}

// Within reports whether data is one JSON value whose objects and arrays are nested at
// most so deep. depth must not be above encoding/json's bound, 10,000.
func Within(data []byte, depth int) bool {
	at := value(data, space(data, 0), maxDepth-depth)
	return at >= 0 && space(data, at) == len(data)
}

// The functions below take a place in the text and return the place after what
// they read, or -1 where that is not there.

func space(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

func value(data []byte, at, depth int) int {
	if at >= len(data) {
		return -1
	}
	switch c := data[at]; c {
	case '{':
		return members(data, at+1, depth+1)
	case '[':
		return items(data, at+1, depth+1)
	case '"':
		return text(data, at+1)
	case 't':
		return word(data, at, "true")
	case 'f':
		return word(data, at, "false")
	case 'n':
		return word(data, at, "null")
	}
	return number(data, at)
}

func word(data []byte, at int, want string) int {
	if len(data)-at < len(want) || string(data[at:at+len(want)]) != want {
		return -1
	}
	return at + len(want)
}

func members(data []byte, at, depth int) int {
	if depth > maxDepth {
		return -1
	}
	if at = space(data, at); at < len(data) && data[at] == '}' {
		return at + 1
	}
	for {
		if at = space(data, at); at >= len(data) || data[at] != '"' {
			return -1
		}
		if at = text(data, at+1); at < 0 {
			return -1
		}
		if at = space(data, at); at >= len(data) || data[at] != ':' {
			return -1
		}
		if at = value(data, space(data, at+1), depth); at < 0 {
			return -1
		}
		if at = space(data, at); at >= len(data) {
			return -1
		}
		switch at++; data[at-1] {
		case ',':
		case '}':
			return at
		default:
			return -1
		}
	}
}

func items(data []byte, at, depth int) int {
	if depth > maxDepth {
		return -1
	}
	if at = space(data, at); at < len(data) && data[at] == ']' {
		return at + 1
	}
	for {
		if at = value(data, space(data, at), depth); at < 0 {
			return -1
		}
		if at = space(data, at); at >= len(data) {
			return -1
		}
		switch at++; data[at-1] {
		case ',':
		case ']':
			return at
		default:
			return -1
		}
	}
}

// text reads the rest of a text after its first quote.
func text(data []byte, at int) int {
	for at < len(data) {
		if len(data)-at >= 8 && ordinary(binary.LittleEndian.Uint64(data[at:])) {
			at += 8
			continue
		}
		switch c := data[at]; {
		case c == '"':
			return at + 1
		case c < ' ':
			return -1
		case c != '\\':
			at++
			continue
		}
		if at++; at >= len(data) {
			return -1
		}
		switch data[at] {
		case 'b', 'f', 'n', 'r', 't', '\\', '/', '"':
			at++
		case 'u':
			if len(data)-at < 5 {
				return -1
			}
			for _, c := range data[at+1 : at+5] {
				if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
					return -1
				}
			}
			at += 5
		default:
			return -1
		}
	}
	return -1
}

// ordinary reports whether none of eight bytes is a control character, a quote or
// a backslash. It may be false for others too.
func ordinary(eight uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := eight^each*'"', eight^each*'\\'
	return ((eight-each*' ')&^eight|(quote-each)&^quote|(slash-each)&^slash)&high == 0
}

func number(data []byte, at int) int {
	if at < len(data) && data[at] == '-' {
		at++
	}
	if at < len(data) && data[at] == '0' {
		at++
	} else if at = digits(data, at); at < 0 {
		return -1
	}
	if at < len(data) && data[at] == '.' {
		if at = digits(data, at+1); at < 0 {
			return -1
		}
	}
	if at < len(data) && (data[at] == 'e' || data[at] == 'E') {
		if at++; at < len(data) && (data[at] == '+' || data[at] == '-') {
			at++
		}
		return digits(data, at)
	}
	return at
}

// digits reads one digit or more.
func digits(data []byte, at int) int {
	from := at
	for at < len(data) && data[at] >= '0' && data[at] <= '9' {
		at++
	}
	if at == from {
		return -1
	}
	return at
}

// Text returns the text of a JSON string as [encoding/json] decodes it. It reports
// false for everything else, and for a string with \u escapes or invalid UTF-8: decode
// that in full. raw must be valid JSON without space around it.
func Text(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || !utf8.Valid(raw) {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	return unescape(raw)
}

// unescape returns the text between the quotes of a JSON string. It reports false if
// there is a \u escape.
func unescape(raw []byte) (string, bool) {
	var out strings.Builder
	out.Grow(len(raw))
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			out.Write(raw)
			return out.String(), true
		}
		out.Write(raw[:at])
		c := raw[at+1]
		switch c {
		case 'u':
			return "", false
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		}
		out.WriteByte(c)
		raw = raw[at+2:]
	}
}
