// Package jsonappend appends JSON to a byte slice, for the places that write it
// on every call and in a fixed order: requests to models, answers to MCP clients,
// rows of databases, the audit log and the outcome log. Everything else uses
// encoding/json.
package jsonappend

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// String appends s as a JSON string, byte for byte as [encoding/json.Encoder]
// writes it with SetEscapeHTML(false). What is not UTF-8 becomes U+FFFD.
func String(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		dst = appendEscape(append(dst, s[start:i]...), r)
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// ASCII appends s as a JSON string that holds printable ASCII only: no control
// character, escape sequence or direction mark of s reaches a terminal. What is
// not UTF-8 becomes U+FFFD.
func ASCII(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		dst = appendEscape(append(dst, s[start:i]...), r)
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// Comma appends a comma unless a list or an object has just begun.
func Comma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != '[' {
		dst = append(dst, ',')
	}
	return dst
}

// Key begins a member of an object, with the comma before it where one is due.
// The name is the caller's own: nothing in it needs an escape.
func Key(dst []byte, name string) []byte {
	dst = append(Comma(dst), '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if r > 0xffff { // a surrogate pair
		r -= 0x10000
		dst = appendUnit(dst, 0xd800+r>>10)
		r = 0xdc00 + r&0x3ff
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
