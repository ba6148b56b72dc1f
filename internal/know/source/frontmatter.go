package source

import (
	"bytes"
	"strings"
	"unicode"

	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// A page is a Markdown file taken apart: its frontmatter, and the rest.
type page struct {
	meta     *yamldoc.Map
	found    bool   // there was frontmatter
	head     []byte // the frontmatter's text, without the lines of dashes
	metaLine int    // line of the file on which the frontmatter's text begins
	body     string
	bodyLine int
}

// line turns a line of the frontmatter into a line of the file. What stands
// nowhere in particular stays so.
func (p page) line(of int) int {
	if of <= 0 || !p.found {
		return 0
	}
	return of + p.metaLine - 1
}

// textLine returns the line of the file on which the body's text begins.
func (p page) textLine() int {
	text := strings.TrimLeftFunc(p.body, unicode.IsSpace)
	return p.bodyLine + strings.Count(p.body[:len(p.body)-len(text)], "\n")
}

// splitPage takes a Markdown file apart. Frontmatter is what stands between a
// first line of exactly "---" and the next one; line ends may be LF or CRLF,
// and a byte order mark before it is passed over. The error is about the
// frontmatter; the body is there all the same.
func splitPage(data []byte, limits yamldoc.Limits) (page, error) {
	p, closed := cutPage(data)
	if !p.found {
		return p, nil
	}
	if !closed {
		return p, &yamldoc.Error{
			Line: 1, Message: "the frontmatter that begins on line 1 never ends",
			Fix: "close it with a line of three dashes",
		}
	}
	var err error
	p.meta, err = yamldoc.Parse(p.head, limits)
	return p, err
}

// cutPage parts frontmatter and body without reading either. Where nothing
// closes the frontmatter, the page is all body and all of it counts as one.
func cutPage(data []byte) (p page, closed bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	first, rest, ok := cutLine(data)
	if !ok || !isRule(first) {
		return page{body: safefs.NormalizeNewlines(data), bodyLine: 1}, false
	}
	remaining, line := rest, 2
	for {
		text, next, more := cutLine(remaining)
		if isRule(text) || string(bytes.TrimRight(text, " \t\r")) == "..." {
			return page{
				found: true, head: rest[:len(rest)-len(remaining)], metaLine: 2,
				body: safefs.NormalizeNewlines(next), bodyLine: line + 1,
			}, true
		}
		if !more {
			return page{found: true, metaLine: 1, body: safefs.NormalizeNewlines(data), bodyLine: 1}, false
		}
		remaining, line = next, line+1
	}
}

// isRule reports whether a line is three dashes.
func isRule(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// cutLine returns the first line without its end, the rest, and whether there
// was an end.
func cutLine(data []byte) (line, rest []byte, ended bool) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		return data, nil, false
	}
	return data[:i], data[i+1:], true
}
