package connect

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// A statement is a header or a key with its value, on lines of its own.
type statement struct {
	start, end int      // whole lines, comment and line end included
	path       []string // from the root of the document
	header     bool
	value      *node // nil for a header
}

// scanTOML finds the statements of a document. It is for documents that the
// library reads: for others it returns an error or nonsense, but it always ends.
func scanTOML(data []byte) ([]statement, error) {
	p := &tomlParser{jsonParser{data: data}}
	if bytes.HasPrefix(data, byteOrderMark) {
		p.at = len(byteOrderMark)
	}
	var out []statement
	var head []string
	for {
		p.blank(true)
		if p.at >= len(data) {
			return out, nil
		}
		st := statement{start: bytes.LastIndexByte(data[:p.at], '\n') + 1}
		if st.start < p.at && bytes.HasPrefix(data, byteOrderMark) {
			st.start = max(st.start, len(byteOrderMark))
		}
		if p.peek() == '[' {
			path, err := p.head()
			if err != nil {
				return nil, err
			}
			head = path
			st.path, st.header = path, true
		} else {
			path, value, err := p.pair(0)
			if err != nil {
				return nil, err
			}
			st.path, st.value = append(slices.Clone(head), path...), value
		}
		if err := p.lineEnd(); err != nil {
			return nil, err
		}
		st.end = p.at
		out = append(out, st)
	}
}

type tomlParser struct{ jsonParser }

// blank goes over blanks, and over line ends and comments where they may be.
func (p *tomlParser) blank(lines bool) {
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == ' ' || c == '\t':
			p.at++
		case lines && (c == '\n' || c == '\r'):
			p.at++
		case lines && c == '#':
			p.comment()
		default:
			return
		}
	}
}

func (p *tomlParser) comment() {
	end := bytes.IndexByte(p.data[p.at:], '\n')
	if end < 0 {
		end = len(p.data) - p.at
	}
	p.at += end
}

// lineEnd goes over the rest of a line, which is nothing or a comment.
func (p *tomlParser) lineEnd() error {
	p.blank(false)
	if p.peek() == '#' {
		p.comment()
	}
	if p.peek() == '\r' {
		p.at++
	}
	switch {
	case p.at >= len(p.data):
		return nil
	case p.data[p.at] == '\n':
		p.at++
		return nil
	}
	return p.fail("the end of the line was expected")
}

func (p *tomlParser) head() ([]string, error) {
	p.at++
	double := p.peek() == '['
	if double {
		p.at++
	}
	path, err := p.key()
	if err != nil {
		return nil, err
	}
	for i := 0; i < 2; i++ {
		if p.peek() != ']' {
			return nil, p.fail("a ] was expected")
		}
		p.at++
		if !double {
			break
		}
	}
	return path, nil
}

// key reads the parts of a name, and the blanks behind it.
func (p *tomlParser) key() ([]string, error) {
	var path []string
	for {
		p.blank(false)
		switch c := p.peek(); {
		case c == '"' || c == '\'':
			n, err := p.text()
			if err != nil {
				return nil, err
			}
			path = append(path, n.text)
		case bareKey(c):
			start := p.at
			for bareKey(p.peek()) {
				p.at++
			}
			path = append(path, string(p.data[start:p.at]))
		default:
			return nil, p.fail("a name was expected")
		}
		p.blank(false)
		if p.peek() != '.' {
			return path, nil
		}
		p.at++
	}
}

func (p *tomlParser) pair(depth int) ([]string, *node, error) {
	path, err := p.key()
	if err != nil {
		return nil, nil, err
	}
	if p.peek() != '=' {
		return nil, nil, p.fail("a = was expected")
	}
	p.at++
	p.blank(false)
	n, err := p.tomlValue(depth)
	return path, n, err
}

func (p *tomlParser) tomlValue(depth int) (*node, error) {
	if depth > deepest {
		return nil, p.fail("it is nested more than %d deep", deepest)
	}
	switch p.peek() {
	case '"', '\'':
		return p.text()
	case '[':
		return p.list(depth)
	case '{':
		return p.inline(depth)
	}
	start := p.at
	for p.at < len(p.data) && !bytes.ContainsRune([]byte(",]}#\r\n"), rune(p.data[p.at])) {
		p.at++
	}
	raw := bytes.TrimRight(p.data[start:p.at], " \t")
	if len(raw) == 0 {
		return nil, p.fail("a value was expected")
	}
	return &node{kind: other, start: start, end: start + len(raw), text: string(raw)}, nil
}

func (p *tomlParser) list(depth int) (*node, error) {
	n := &node{kind: array, start: p.at}
	p.at++
	for {
		p.blank(true)
		if p.peek() == ']' {
			p.at++
			n.end = p.at
			return n, nil
		}
		item, err := p.tomlValue(depth + 1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		p.blank(true)
		switch p.peek() {
		case ',':
			p.at++
		case ']':
		default:
			return nil, p.fail("a comma or ] was expected")
		}
	}
}

func (p *tomlParser) inline(depth int) (*node, error) {
	n := &node{kind: object, start: p.at}
	p.at++
	for {
		p.blank(true)
		if p.peek() == '}' {
			p.at++
			n.end = p.at
			return n, nil
		}
		start := p.at
		path, value, err := p.pair(depth + 1)
		if err != nil {
			return nil, err
		}
		m := member{name: path[0], path: path, start: start, end: value.end, comma: -1, value: value}
		p.blank(true)
		switch p.peek() {
		case ',':
			m.comma = p.at
			p.at++
		case '}':
		default:
			return nil, p.fail("a comma or } was expected")
		}
		n.comma = m.comma >= 0
		n.members = append(n.members, m)
	}
}

// text reads a string of any of the four kinds.
func (p *tomlParser) text() (*node, error) {
	start := p.at
	mark := p.data[p.at : p.at+1]
	if long := bytes.Repeat(mark, 3); bytes.HasPrefix(p.data[p.at:], long) {
		mark = long
	}
	p.at += len(mark)
	for p.at < len(p.data) {
		switch {
		case mark[0] == '"' && p.data[p.at] == '\\':
			p.at += 2
		case bytes.HasPrefix(p.data[p.at:], mark):
			p.at += len(mark)
			// A long one may end in one or two quotes of its own.
			for i := 0; len(mark) == 3 && i < 2 && p.peek() == mark[0]; i++ {
				p.at++
			}
			return p.decoded(start)
		case len(mark) == 1 && p.data[p.at] == '\n':
			return nil, p.fail("a text is not closed on its line")
		default:
			p.at++
		}
	}
	return nil, p.fail("a text is never closed")
}

func (p *tomlParser) decoded(start int) (*node, error) {
	if p.at > len(p.data) {
		return nil, p.fail("a text is never closed")
	}
	var v struct{ X string }
	if err := toml.Unmarshal(fmt.Appendf(nil, "X = %s\n", p.data[start:p.at]), &v); err != nil {
		return nil, p.fail("a text has an escape or a character that TOML does not allow")
	}
	return &node{kind: text, start: start, end: p.at, text: v.X}, nil
}
