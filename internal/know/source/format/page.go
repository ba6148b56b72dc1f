package format

import (
	"bytes"
	"strings"
	"unicode"

	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// A Page is a Markdown file taken apart: its frontmatter, and the rest.
type Page struct {
	Meta     *yamldoc.Map
	Found    bool   // there was frontmatter
	Head     []byte // the frontmatter's text, without the lines of dashes
	MetaLine int    // line of the file on which the frontmatter's text begins
	Body     string
	BodyLine int
}

// Line turns a line of the frontmatter into a line of the file. What stands
// nowhere in particular stays so.
func (p Page) Line(of int) int {
	if of <= 0 || !p.Found {
		return 0
	}
	return of + p.MetaLine - 1
}

// TextLine returns the line of the file on which the body's text begins.
func (p Page) TextLine() int {
	text := strings.TrimLeftFunc(p.Body, unicode.IsSpace)
	return p.BodyLine + strings.Count(p.Body[:len(p.Body)-len(text)], "\n")
}

// SplitPage takes a Markdown file apart. Frontmatter is what stands between a
// first line of exactly "---" and the next one; line ends may be LF or CRLF,
// and a byte order mark before it is passed over. The error is about the
// frontmatter; the body is there all the same.
func SplitPage(data []byte, limits yamldoc.Limits) (Page, error) {
	p, closed := CutPage(data)
	if !p.Found {
		return p, nil
	}
	if !closed {
		return p, &yamldoc.Error{
			Line: 1, Message: "the frontmatter that begins on line 1 never ends",
			Fix: "close it with a line of three dashes",
		}
	}
	var err error
	p.Meta, err = yamldoc.Parse(p.Head, limits)
	return p, err
}

// CutPage parts frontmatter and body without reading either. Where nothing
// closes the frontmatter, the page is all body and all of it counts as one.
func CutPage(data []byte) (p Page, closed bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	first, rest, ok := CutLine(data)
	if !ok || !isRule(first) {
		return Page{Body: safefs.NormalizeNewlines(data), BodyLine: 1}, false
	}
	remaining, line := rest, 2
	for {
		text, next, more := CutLine(remaining)
		if isRule(text) || string(bytes.TrimRight(text, " \t\r")) == "..." {
			return Page{
				Found: true, Head: rest[:len(rest)-len(remaining)], MetaLine: 2,
				Body: safefs.NormalizeNewlines(next), BodyLine: line + 1,
			}, true
		}
		if !more {
			return Page{Found: true, MetaLine: 1, Body: safefs.NormalizeNewlines(data), BodyLine: 1}, false
		}
		remaining, line = next, line+1
	}
}

// isRule reports whether a line is three dashes.
func isRule(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// CutLine returns the first line without its end, the rest, and whether there
// was an end.
func CutLine(data []byte) (line, rest []byte, ended bool) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		return data, nil, false
	}
	return data[:i], data[i+1:], true
}

// HasFrontmatterKey reports whether the beginning of a file opens frontmatter
// with one of the keys.
func HasFrontmatterKey(head []byte, keys ...string) bool {
	pg, closed := CutPage(head)
	if !pg.Found {
		return false
	}
	text := pg.Head
	if !closed {
		text = head // longer than what was read of the file
	}
	for _, key := range keys {
		if bytes.HasPrefix(text, []byte(key+":")) || bytes.Contains(text, []byte("\n"+key+":")) {
			return true
		}
	}
	return false
}
