package jsonscan

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of the bytes between two quotes, as encoding/json
// would: what is not UTF-8, and half a surrogate pair, becomes U+FFFD.
func Unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	return string(appendUnquoted(make([]byte, 0, len(raw)), raw))
}

func appendUnquoted(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			n = len(raw)
		}
		if plain := raw[:n]; utf8.Valid(plain) {
			dst = append(dst, plain...)
		} else {
			for _, r := range string(plain) { // gives U+FFFD for each bad byte
				dst = utf8.AppendRune(dst, r)
			}
		}
		if raw = raw[n:]; len(raw) > 0 {
			dst, raw = appendEscape(dst, raw)
		}
	}
	return dst
}

func appendEscape(dst, raw []byte) (_, rest []byte) {
	n := escapeLen(raw)
	if n == 0 {
		return append(dst, raw...), nil // never text that str has passed
	}
	switch c := raw[1]; c {
	case 'b':
		dst = append(dst, '\b')
	case 'f':
		dst = append(dst, '\f')
	case 'n':
		dst = append(dst, '\n')
	case 'r':
		dst = append(dst, '\r')
	case 't':
		dst = append(dst, '\t')
	case 'u':
		r, _ := hex4(raw)
		if utf16.IsSurrogate(r) {
			low, _ := hex4(raw[n:])
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				n += 6
			}
		}
		dst = utf8.AppendRune(dst, r)
	default:
		dst = append(dst, c)
	}
	return dst, raw[n:]
}

// escapeLen returns the length of the escape at the beginning of b, or 0.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads \uXXXX.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// Shorten quotes a text for a message.
func Shorten(s string) string {
	const most = 60
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return strconv.Quote(s[:cut]) + "…"
	}
	return strconv.Quote(s)
}

// TextSeparator separates texts that are scanned together. The blank line keeps a word
// of one text ("examples", "pattern") from excusing the next text as a
// quotation.
const TextSeparator = "\n\n"
