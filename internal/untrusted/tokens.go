package untrusted

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Tokens breaks the tokens of chat templates in s, such as <|im_start|>, [INST]
// and </s>, each with a backslash, and returns how many it broke. Everything
// else stays as it is, byte for byte. It is for results that a model reads as
// text, because some templates treat such a token inside a result as its end.
//
// JSON stays the same JSON value. There the first character of a token becomes
// an escape (\u003c|im_start|>), so a program that decodes the text gets
// exactly what was sent. This applies to a text that is JSON as a whole, and to
// each line that is JSON.
//
// Tokens returns its own results unchanged.
func Tokens(s string) (text string, broken int) {
	if !strings.ContainsAny(s, "<[＜［") {
		return s, 0
	}
	var found []marker
	for _, m := range markers(s) {
		if m.kind == templateToken {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return s, 0
	}
	whole := isJSON(s)
	var b strings.Builder
	b.Grow(len(s) + 8*len(found))
	last, lineEnd, lineJSON := 0, -1, false
	for _, m := range found {
		if !whole && m.start > lineEnd {
			lineEnd, lineJSON = lineOf(s, m.start)
		}
		if whole || lineJSON {
			// Only strings of JSON can hold a token.
			r, _ := utf8.DecodeRuneInString(s[m.start:])
			b.WriteString(s[last:m.start])
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteString(s[last:m.at])
			b.WriteByte('\\')
		}
		last = m.at
	}
	b.WriteString(s[last:])
	return b.String(), len(found)
}

// lineOf returns where the line of s around at ends, and whether it is JSON.
func lineOf(s string, at int) (end int, is bool) {
	start := strings.LastIndexByte(s[:at], '\n') + 1
	end = len(s)
	if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
		end = at + i
	}
	return end, isJSON(s[start:end])
}

// isJSON reports whether s is one JSON object, array or string.
func isJSON(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && strings.IndexByte(`{["`, s[0]) >= 0 && json.Valid([]byte(s))
}
