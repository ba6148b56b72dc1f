package yamledit

import (
	"bytes"
	"slices"
	"strings"

	"ken/internal/yamldoc"
)

// A page is a YAML file as lines, for one edit. Lines count from 1, as in
// yamldoc; each keeps its own line end, so that what is not edited stays as
// it is, byte for byte.
//
// A page does not understand all of YAML. Its caller parses the result and
// throws it away if it says anything but what was meant.
type page struct {
	mark      []byte // a byte order mark, or nothing
	lines     []string
	end       string // line end of new lines
	atComment bool   // put a new key below the comment that has it commented out
}

// A region is the part of a page that holds the fields of a block map.
type region struct {
	m     *yamldoc.Map
	first int // line
	stop  int // line after the last
	root  bool
}

func newPage(data []byte) *page {
	p := &page{end: "\n"}
	rest := trimBOM(data)
	p.mark = data[:len(data)-len(rest)]
	p.lines = slices.Collect(strings.Lines(string(rest)))
	// A lone CR at the end of the file becomes a CRLF with the next line.
	if len(p.lines) > 0 && strings.HasSuffix(strings.TrimSuffix(p.lines[0], "\n"), "\r") {
		p.end = "\r\n"
	}
	return p
}

func (p *page) bytes() []byte {
	var b bytes.Buffer
	b.Write(p.mark)
	for _, line := range p.lines {
		b.WriteString(line)
	}
	return b.Bytes()
}

// at returns a line without its end.
func (p *page) at(line int) string {
	if line < 1 || line > len(p.lines) {
		return ""
	}
	return strings.TrimRight(p.lines[line-1], "\r\n")
}

// splice puts new lines in the place of the lines first to last.
func (p *page) splice(first, last int, lines ...string) {
	if first < 1 || first > len(p.lines)+1 || last > len(p.lines) {
		return
	}
	for i := range lines {
		lines[i] += p.end
	}
	if first > 1 && first-1 == len(p.lines) && !strings.HasSuffix(p.lines[first-2], "\n") {
		p.lines[first-2] += p.end
	}
	p.lines = slices.Replace(p.lines, first-1, max(last, first-1), lines...)
}

// put sets the value at a path below a region.
func (p *page) put(r region, path []string, v yamldoc.Value) {
	i := slices.IndexFunc(r.m.Fields, func(f yamldoc.Field) bool { return f.Key == path[0] })
	if i < 0 {
		p.insert(r, path, v)
		return
	}
	f, next := r.m.Fields[i], r.stop
	if i+1 < len(r.m.Fields) {
		next = r.m.Fields[i+1].Line
	}
	sub, isMap := f.Value.Any.(*yamldoc.Map)
	switch {
	case len(path) == 1:
		p.replace(f, next, v.Any)
	case f.Value.Any == nil:
		p.open(f, next, path[1:], v)
	case isMap && p.isBlock(f):
		p.put(region{m: sub, first: f.Line + 1, stop: next}, path[1:], v)
	case isMap:
		p.replace(f, next, With(sub, path[1:], v))
	}
}

// remove takes out the value at a path below a region, with the maps that would be
// empty then.
func (p *page) remove(r region, path []string) {
	i := slices.IndexFunc(r.m.Fields, func(f yamldoc.Field) bool { return f.Key == path[0] })
	if i < 0 {
		return
	}
	f, next := r.m.Fields[i], r.stop
	if i+1 < len(r.m.Fields) {
		next = r.m.Fields[i+1].Line
	}
	sub, isMap := f.Value.Any.(*yamldoc.Map)
	switch {
	case len(path) == 1 || isMap && len(pruned(sub, path[1:]).Fields) == 0:
		first, last := f.Line, p.lastLine(f.Line, next)
		if r.root && first > 1 && p.at(first-1) == "" && (last == len(p.lines) || p.at(last+1) == "") {
			first-- // the blank line that set the section apart
		}
		p.splice(first, last)
	case isMap && p.isBlock(f):
		p.remove(region{m: sub, first: f.Line + 1, stop: next}, path[1:])
	case isMap:
		p.replace(f, next, pruned(sub, path[1:]))
	}
}

// insert adds a key that the region does not have.
func (p *page) insert(r region, path []string, v yamldoc.Value) {
	indent := ""
	if len(r.m.Fields) > 0 {
		indent = indentOf(p.at(r.m.Fields[0].Line))
	}
	lines := p.newLines(indent, path, v)
	if after := p.commented(r.first, r.stop, path[0]); r.root && len(path) == 1 && after > 0 && p.at(after)[0] == '#' {
		p.splice(after+1, 0, lines...)
		return
	}
	if r.root { // a new section, after all others
		if n := len(p.lines); n > 0 && p.at(n) != "" {
			lines = append([]string{""}, lines...)
		}
		p.splice(len(p.lines)+1, 0, lines...)
		return
	}
	after := p.commented(r.first, r.stop, path[0])
	if after == 0 {
		after = p.lastLine(r.m.Fields[len(r.m.Fields)-1].Line, r.stop)
	}
	p.splice(after+1, 0, lines...)
}

// open adds the first key of a section that has none.
func (p *page) open(f yamldoc.Field, next int, path []string, v yamldoc.Value) {
	line := p.at(f.Line)
	colon := afterKey(line, f.Key)
	if colon < 0 {
		return
	}
	_, comment := SplitComment(line[colon:])
	lines := p.newLines(indentOf(line)+"  ", path, v)
	if after := p.commented(f.Line+1, next, path[0]); after > 0 {
		p.splice(after+1, 0, lines...)
		p.splice(f.Line, f.Line, line[:colon]+comment)
		return
	}
	p.splice(f.Line, f.Line, append([]string{line[:colon] + comment}, lines...)...)
}

// replace writes another value behind a key. Comments that stood within the
// old value move above the key.
func (p *page) replace(f yamldoc.Field, next int, v any) {
	line := p.at(f.Line)
	colon := afterKey(line, f.Key)
	if colon < 0 {
		return
	}
	last := p.lastLine(f.Line, next)
	var lines []string
	for n := f.Line + 1; n <= last; n++ {
		if _, comment := SplitComment(p.at(n)); comment != "" {
			lines = append(lines, indentOf(line)+strings.TrimLeft(comment, " \t"))
		}
	}
	_, comment := SplitComment(line[colon:])
	lines = append(lines, line[:colon]+" "+Flow(v)+comment)
	p.splice(f.Line, last, lines...)
}

// newLines writes a key with its value, and the parents that it needs.
func (p *page) newLines(indent string, path []string, v yamldoc.Value) []string {
	var out []string
	for _, key := range path[:len(path)-1] {
		out = append(out, indent+blockKey(key)+":")
		indent += "  "
	}
	return append(out, indent+blockKey(path[len(path)-1])+": "+Flow(v.Any))
}

// commented finds the line on which a key stands commented out, or 0.
func (p *page) commented(first, stop int, key string) int {
	if !p.atComment {
		return 0
	}
	for n := first; n < stop; n++ {
		rest, ok := strings.CutPrefix(strings.TrimLeft(p.at(n), " \t"), "#")
		if ok && afterKey(strings.TrimLeft(rest, " \t"), key) > 0 {
			return n
		}
	}
	return 0
}

// isBlock reports whether a field's map is written as lines below its key
// rather than as {…}.
func (p *page) isBlock(f yamldoc.Field) bool {
	colon := afterKey(p.at(f.Line), f.Key)
	if colon < 0 {
		return false
	}
	content, _ := SplitComment(p.at(f.Line)[colon:])
	if strings.TrimSpace(content) != "" {
		return false
	}
	for n := f.Line + 1; n <= len(p.lines); n++ {
		if content, _ := SplitComment(p.at(n)); strings.TrimSpace(content) != "" {
			return strings.TrimSpace(content)[0] != '{'
		}
	}
	return false
}

// lastLine returns the last line of what begins on a line and ends before stop:
// the comments before stop belong to what comes there.
func (p *page) lastLine(first, stop int) int {
	n := stop - 1
	for n > first {
		content, _ := SplitComment(p.at(n))
		if s := strings.TrimSpace(content); s != "" && s != "..." {
			break
		}
		n--
	}
	return n
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " "))] }

// afterKey returns the place behind "key:" in a line that begins with that key,
// plain or quoted; -1 where it does not.
func afterKey(line, key string) int {
	indent := len(indentOf(line))
	for _, spelling := range []string{key, quote(key), "'" + key + "'"} {
		rest, ok := strings.CutPrefix(line[indent:], spelling)
		if !ok {
			continue
		}
		trimmed := strings.TrimLeft(rest, " ")
		if strings.HasPrefix(trimmed, ":") {
			return len(line) - len(trimmed) + 1
		}
	}
	return -1
}

// SplitComment parts a line from the comment at its end; the comment keeps the
// space before it.
func SplitComment(s string) (content, comment string) {
	var quoted byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quoted == '"' && c == '\\':
			i++
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case (c == '"' || c == '\'') && opensQuote(s[:i]):
			quoted = c
		case c == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t'):
			content = strings.TrimRight(s[:i], " \t")
			return content, s[len(content):]
		}
	}
	return s, ""
}

// opensQuote reports whether a quote after this begins a quoted text; within a
// plain word it is only an apostrophe.
func opensQuote(before string) bool {
	return before == "" || strings.ContainsRune(" \t[{,:", rune(before[len(before)-1]))
}
