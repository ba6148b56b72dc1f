package yamldoc

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Limits bound a document before it is parsed. Zero fields mean the defaults.
type Limits struct {
	Bytes int // 64 KiB
	Keys  int // 4,000 keys and list items
	Depth int // 64 levels
}

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 64 << 10
	}
	if l.Keys == 0 {
		l.Keys = 4000
	}
	if l.Depth == 0 {
		l.Depth = 64
	}
	return l
}

// precheck refuses what would be slow or ambiguous to parse, by looking at
// bytes only: every YAML library takes seconds for a map of 100,000 keys.
func precheck(data []byte, limits Limits) ([]byte, error) {
	if len(data) > limits.Bytes {
		return nil, &Error{
			Message: fmt.Sprintf("the document has %d bytes, more than the %d that are read", len(data), limits.Bytes),
			Fix:     "make it smaller or split it",
		}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the parser counts some of them twice
	if !utf8.Valid(data) {
		return nil, &Error{Line: badLine(data), Message: "the text is not valid UTF-8", Fix: "save the file as UTF-8"}
	}
	return data, withinLimits(data, limits)
}

// withinLimits refuses more keys and levels than there may be, and a NUL byte.
func withinLimits(data []byte, limits Limits) error {
	line, keys, flow, deepest := 1, 0, 0, 0
	lineStart := true
	for i, c := range data {
		switch c {
		case '\n':
			line++
			lineStart = true
			continue
		case 0:
			return &Error{Line: line, Message: "the text holds a NUL byte", Fix: "remove it; text files have none"}
		case ':':
			if i+1 == len(data) || isSpace(data[i+1]) || flow > 0 {
				keys++
			}
		case ',':
			if flow > 0 {
				keys++
			}
		case '-':
			// "- - - -" nests one level per dash without any bracket.
			if lineStart && (i+1 == len(data) || isSpace(data[i+1])) {
				keys++
				if n := dashes(data[i:]); n > deepest {
					deepest = n
				}
			}
		case '[', '{':
			flow++
			deepest = max(deepest, flow)
		case ']', '}':
			flow = max(0, flow-1)
		}
		if !isSpace(c) {
			lineStart = false
		}
		if keys > limits.Keys {
			return &Error{
				Line: line, Message: fmt.Sprintf("more than %d keys and items", limits.Keys),
				Fix: "split the document",
			}
		}
		if deepest > limits.Depth {
			return tooDeep(line, limits.Depth)
		}
	}
	return nil
}

func tooDeep(line, depth int) *Error {
	return &Error{Line: line, Message: fmt.Sprintf("nested deeper than %d levels", depth), Fix: "flatten it"}
}

func dashes(b []byte) int {
	n := 0
	for len(b) >= 2 && b[0] == '-' && b[1] == ' ' {
		n++
		b = b[2:]
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func badLine(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		data = data[n:]
	}
	return 0
}
