package jsonscan

import (
	"bytes"
	"unicode/utf8"
)

// LineAt returns the line, from 1, of a byte of the text.
func LineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte{'\n'})
}

// FirstInvalid returns the first byte that is not part of valid UTF-8.
func FirstInvalid(data []byte) int {
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return at
}

// A LineCounter counts lines for offsets that only grow.
type LineCounter struct {
	Data []byte
	pos  int
	line int
}

// At returns the line, from 1, of a byte that is not before the last one asked
// for.
func (l *LineCounter) At(offset int) int {
	l.line += bytes.Count(l.Data[l.pos:offset], []byte{'\n'})
	l.pos = offset
	return l.line + 1
}
