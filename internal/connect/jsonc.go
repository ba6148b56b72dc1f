package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

const (
	// Largest is how many bytes a configuration file may have.
	Largest = 32 << 20

	deepest = 200
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// parseJSON reads JSON that may have comments, commas at the end of lists and
// a byte order mark, as the editors among the clients allow. A document of
// nothing but space and comments is nil.
func parseJSON(data []byte) (*node, error) {
	p := &jsonParser{data: data}
	if bytes.HasPrefix(data, byteOrderMark) {
		p.at = len(byteOrderMark)
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at == len(data) {
		return nil, nil
	}
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at < len(data) {
		return nil, p.fail("there is something behind the end of the document")
	}
	return n, nil
}

type jsonParser struct {
	data []byte
	at   int
}

func (p *jsonParser) fail(format string, args ...any) error {
	return &syntaxError{lineAt(p.data, p.at), fmt.Sprintf(format, args...)}
}

// peek returns the next byte, or 0 at the end.
func (p *jsonParser) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

// space goes over white space and comments.
func (p *jsonParser) space() error {
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			p.at++
		case bytes.HasPrefix(p.data[p.at:], []byte("//")):
			end := bytes.IndexByte(p.data[p.at:], '\n')
			if end < 0 {
				p.at = len(p.data)
				return nil
			}
			p.at += end + 1
		case bytes.HasPrefix(p.data[p.at:], []byte("/*")):
			end := bytes.Index(p.data[p.at+2:], []byte("*/"))
			if end < 0 {
				return p.fail("a comment is never closed")
			}
			p.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

func (p *jsonParser) value(depth int) (*node, error) {
	if depth > deepest {
		return nil, p.fail("it is nested more than %d deep", deepest)
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.string()
	case c == '-' || c >= '0' && c <= '9':
		return p.word(number)
	case c == 't' || c == 'f':
		return p.word(boolean)
	case c == 'n':
		return p.word(null)
	case c == 0 && p.at >= len(p.data):
		return nil, p.fail("it ends before the document is complete")
	}
	return nil, p.fail("a value was expected")
}

func (p *jsonParser) object(depth int) (*node, error) {
	n := &node{kind: object, start: p.at}
	p.at++
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.peek() == '}' {
			p.at++
			n.end = p.at
			return n, nil
		}
		if len(n.members) > 0 && !n.comma {
			return nil, p.fail("a comma or } was expected")
		}
		if p.peek() != '"' {
			return nil, p.fail("a name in quotes was expected")
		}
		m, err := p.member(depth)
		if err != nil {
			return nil, err
		}
		n.comma = m.comma >= 0
		n.members = append(n.members, m)
	}
}

func (p *jsonParser) member(depth int) (member, error) {
	key, err := p.string()
	if err != nil {
		return member{}, err
	}
	if err := p.space(); err != nil {
		return member{}, err
	}
	if p.peek() != ':' {
		return member{}, p.fail("a colon was expected")
	}
	p.at++
	if err := p.space(); err != nil {
		return member{}, err
	}
	value, err := p.value(depth + 1)
	if err != nil {
		return member{}, err
	}
	comma, err := p.comma()
	return member{name: key.text, start: key.start, end: value.end, comma: comma, value: value}, err
}

// comma skips space and one comma, and returns the position of the comma or -1.
func (p *jsonParser) comma() (int, error) {
	if err := p.space(); err != nil {
		return -1, err
	}
	if p.peek() != ',' {
		return -1, nil
	}
	p.at++
	return p.at - 1, nil
}

func (p *jsonParser) array(depth int) (*node, error) {
	n := &node{kind: array, start: p.at}
	p.at++
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.peek() == ']' {
			p.at++
			n.end = p.at
			return n, nil
		}
		if len(n.items) > 0 && !n.comma {
			return nil, p.fail("a comma or ] was expected")
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		comma, err := p.comma()
		if err != nil {
			return nil, err
		}
		n.comma = comma >= 0
	}
}

func (p *jsonParser) string() (*node, error) {
	n := &node{kind: text, start: p.at}
	escaped := false
	for p.at++; p.at < len(p.data); p.at++ {
		switch c := p.data[p.at]; {
		case c == '\\':
			escaped = true
			p.at++
		case c == '"':
			p.at++
			n.end = p.at
			raw := p.data[n.start:n.end]
			if !escaped && utf8.Valid(raw) { // most are
				n.text = string(raw[1 : len(raw)-1])
				return n, nil
			}
			if !utf8.Valid(raw) || json.Unmarshal(raw, &n.text) != nil {
				return nil, p.fail("a text has an escape or a character that JSON does not allow")
			}
			return n, nil
		case c < ' ':
			return nil, p.fail("a text is not closed on its line")
		}
	}
	return nil, p.fail("a text is never closed")
}

// word reads what is neither nested nor quoted.
func (p *jsonParser) word(kind nodeKind) (*node, error) {
	start := p.at
	for p.at < len(p.data) && !bytes.ContainsRune([]byte(" \t\r\n,:]}[{\"/"), rune(p.data[p.at])) {
		p.at++
	}
	raw := p.data[start:p.at]
	if !json.Valid(raw) {
		return nil, p.fail("a value was expected")
	}
	return &node{kind: kind, start: start, end: p.at, text: string(raw)}, nil
}
