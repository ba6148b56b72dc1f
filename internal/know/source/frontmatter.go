package source

import (
	"bytes"

	"ken/internal/yamldoc"
)

// A page is a Markdown file taken apart: its frontmatter, and the rest.
type page struct {
	meta     *yamldoc.Map
	found    bool // there was frontmatter
	metaLine int  // line of the file on which the frontmatter's text begins
	body     string
	bodyLine int
}

// splitPage takes a Markdown file apart. Frontmatter is what stands between a
// first line of exactly "---" and the next one; line ends may be LF or CRLF,
// and a byte order mark before it is passed over. The error is about the
// frontmatter; the body is there all the same.
func splitPage(data []byte, limits yamldoc.Limits) (page, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	first, rest, ok := cutLine(data)
	if !ok || string(bytes.TrimRight(first, " \t\r")) != "---" {
		return page{body: normalizeNewlines(data), bodyLine: 1}, nil
	}
	var head []byte
	remaining, line := rest, 2
	for {
		text, next, more := cutLine(remaining)
		trimmed := string(bytes.TrimRight(text, " \t\r"))
		if trimmed == "---" || trimmed == "..." {
			head = rest[:len(rest)-len(remaining)]
			p := page{found: true, metaLine: 2, body: normalizeNewlines(next), bodyLine: line + 1}
			var err error
			p.meta, err = yamldoc.Parse(head, limits)
			return p, err
		}
		if !more {
			return page{found: true, body: normalizeNewlines(data), bodyLine: 1}, &yamldoc.Error{
				Line: 0, Message: "the frontmatter that begins on line 1 never ends",
				Fix: "close it with a line of three dashes",
			}
		}
		remaining, line = next, line+1
	}
}

// cutLine gives the first line without its end, the rest, and whether there
// was an end.
func cutLine(data []byte) (line, rest []byte, ended bool) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		return data, nil, false
	}
	return data[:i], data[i+1:], true
}

func normalizeNewlines(data []byte) string {
	return string(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
}
