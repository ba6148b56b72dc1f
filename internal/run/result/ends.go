package result

import (
	"fmt"
	"unicode/utf8"
)

// Ends returns the first and the last of a text that is longer than limit
// bytes, and between them how much is missing and, in the words of note, where
// it is. A shorter text is given as it is.
func Ends(text []byte, limit int, note string) string {
	if len(text) <= limit {
		return string(text)
	}
	head, tail := text[:limit*3/4], text[len(text)-limit/4:]
	for len(head) > 0 && !utf8.RuneStart(text[len(head)]) {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	left := len(text) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[… %d bytes left out; %s …]\n%s", head, left, note, tail)
}

// Where says where the bytes of a kept result are that is no text: no model
// reads them, and a person finds them as a file.
func Where(e Entry) string {
	return "it is kept as " + e.Handle + ": " + e.Handle + ".text in the folder of results has its bytes, and read_result with op info says what it is"
}
