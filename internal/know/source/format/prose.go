package format

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// FoldSpace makes one line of a text: runs of ordinary space become one. What
// is not ordinary (zero width, bidi) stays for the scan to see.
func FoldSpace(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' })
	return strings.Join(words, " ")
}

// summaryLimit caps a description that is made from a body.
const summaryLimit = 300

// SummaryOf returns a short description of a Markdown text: its first paragraph
// of prose, else its first heading. cut says that the paragraph goes on.
func SummaryOf(body string) (text string, cut bool) {
	text = firstParagraph(body)
	if text == "" {
		text = firstHeading(body)
	}
	if utf8.RuneCountInString(text) <= summaryLimit {
		return text, false
	}
	text = string([]rune(text)[:summaryLimit-1])
	if i := strings.LastIndexByte(text, ' '); i > summaryLimit/2 {
		text = text[:i]
	}
	return text + "…", true
}

func firstParagraph(body string) string {
	var words []string
	fence, comment := "", false
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		switch {
		case comment:
			comment = !strings.Contains(line, "-->")
			continue
		case fence != "":
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
			continue
		}
		if line != "" && !isProse(line) {
			if len(words) > 0 {
				break
			}
			comment = strings.HasPrefix(line, "<!--") && !strings.Contains(line, "-->")
			if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
				fence = line[:3]
			}
			continue
		}
		if line == "" {
			if len(words) > 0 {
				break
			}
			continue
		}
		words = append(words, strings.TrimLeft(line, "> "))
	}
	return FoldSpace(strings.Join(words, " "))
}

// isProse reports whether a line of Markdown is text rather than a heading, a
// fence, an image, a tag, a table or a line across the page.
func isProse(line string) bool {
	for _, mark := range []string{"#", "```", "~~~", "![", "[![", "<", "|"} {
		if strings.HasPrefix(line, mark) {
			return false
		}
	}
	return strings.Trim(line, "-=*_ ") != ""
}

func firstHeading(body string) string {
	for line := range strings.Lines(body) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			if text = FoldSpace(strings.Trim(text, "# ")); text != "" {
				return text
			}
		}
	}
	return ""
}

// LineOfByte returns the line, from 1, on which a byte of a text stands.
func LineOfByte(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// AsText checks that a file is text. A NUL means that it is none; bytes that
// are not UTF-8 are shown as U+FFFD, and badLine is the first line with one.
func AsText(data []byte) (text []byte, badLine int, nulLine int) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return data, 0, LineOfByte(data, i)
	}
	if utf8.Valid(data) {
		return data, 0, 0
	}
	fixed := bytes.ToValidUTF8(data, []byte("\ufffd"))
	at := 0
	for at < len(data) {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return fixed, LineOfByte(data, at), 0
}

// Text returns a file's bytes as text, or records why they are none. Strict
// formats lose the unit to bytes that are not UTF-8; lenient ones show them as
// what they are and say so.
func (u *Unit) Text(p string, data []byte, lenient bool) ([]byte, bool) {
	text, bad, nul := AsText(data)
	switch {
	case nul > 0:
		u.Fault("not-text", p, nul, "the file holds a NUL byte, which no text does", "save it as plain UTF-8 text")
		return nil, false
	case bad > 0 && !lenient:
		u.Fault("not-utf8", p, bad, "the text is not valid UTF-8", "save the file as UTF-8")
		return nil, false
	case bad > 0:
		u.Warn("not-utf8", p, bad, "the text is not valid UTF-8; what cannot be read is shown as \ufffd", "save the file as UTF-8")
	}
	return text, true
}
