package shim

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// A message is what the shim needs to know of a message of JSON-RPC. Its parts
// are slices of the text; nil is one that is not there.
type message struct {
	id       []byte
	idAt     int // where in the text the id begins
	method   string
	params   []byte
	result   []byte // only of a message that was read whole
	failed   bool   // it is a response with an error
	response bool
}

// readMessage reads an object. It stops as soon as it has seen which response it
// is, unless all of it is wanted: what follows may be long. It is false for what
// is no object.
func readMessage(text []byte, all bool) (m message, ok bool) {
	ok = members(text, func(name string, at int, value func() []byte) bool {
		switch name {
		case "id":
			m.id, m.idAt = value(), at
		case "method":
			if v := value(); len(v) > 1 && v[0] == '"' {
				m.method = unescape(v)
			}
		case "params":
			m.params = value()
		case "result", "error":
			m.response, m.failed = true, name == "error"
			if m.id != nil && !all {
				return false
			}
			if v := value(); !m.failed {
				m.result = v
			}
		}
		return true
	})
	m.response = m.method == "" && m.id != nil
	return m, ok
}

// request reports whether the message wants an answer.
func (m *message) request() bool { return m.method != "" && m.id != nil && string(m.id) != "null" }

// member returns the value of an object's member, nil where it has none.
func member(object []byte, name string) (found []byte) {
	members(object, func(n string, _ int, value func() []byte) bool {
		if n == name {
			found = value()
		}
		return found == nil
	})
	return found
}

// members returns the names of an object's members in lower case, where their
// values begin, and their values. It is false for what is no object; what is no
// JSON within one is not noticed.
func members(text []byte, each func(name string, at int, value func() []byte) (more bool)) bool {
	i := space(text, 0)
	if i >= len(text) || text[i] != '{' {
		return false
	}
	for i++; ; {
		for i = space(text, i); i < len(text) && text[i] == ','; {
			i = space(text, i+1)
		}
		if i >= len(text) || text[i] != '"' {
			return i < len(text) && text[i] == '}'
		}
		end := stringEnd(text, i)
		name := lower(unescape(text[i:end]))
		i = space(text, end)
		if i >= len(text) || text[i] != ':' {
			return false
		}
		at, after := space(text, i+1), -1
		more := each(name, at, func() []byte {
			after = valueEnd(text, at)
			return text[at:after]
		})
		if !more {
			return true
		}
		if after < 0 {
			after = valueEnd(text, at)
		}
		if after == at {
			return false
		}
		i = after
	}
}

// elements returns the values of an array, nil for what is none.
func elements(text []byte) (out [][]byte) {
	i := space(text, 0)
	if i >= len(text) || text[i] != '[' {
		return nil
	}
	for i++; ; {
		for i = space(text, i); i < len(text) && text[i] == ','; {
			i = space(text, i+1)
		}
		end := valueEnd(text, i)
		if end == i {
			return out
		}
		out = append(out, text[i:end])
		i = end
	}
}

func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// stringEnd is behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); {
		at := bytes.IndexByte(text[i:], '"')
		if at < 0 {
			return len(text)
		}
		end, back := i+at, 0
		for end-back-1 >= i && text[end-back-1] == '\\' {
			back++
		}
		if i = end + 1; back%2 == 0 {
			return i
		}
	}
	return len(text)
}

// valueEnd is behind the value that begins at i; it is i where none does.
func valueEnd(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\t', '\r', '\n', ':':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			for i < len(text) && !bytes.ContainsRune([]byte(`"{}[],: `+"\t\r\n"), rune(text[i])) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// key is the same for ids that are the same, however they are written.
func key(id []byte) string {
	if len(id) > 0 && id[0] == '"' {
		return `"` + unescape(id)
	}
	return string(id)
}

// unescape returns what a string of JSON means. What is no escape stays as it is.
func unescape(quoted []byte) string {
	s := bytes.TrimSuffix(bytes.TrimPrefix(quoted, []byte(`"`)), []byte(`"`))
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := unit(s[i+1:])
			if next := s[i+1+n:]; r >= 0xd800 && r < 0xdc00 && bytes.HasPrefix(next, []byte(`\u`)) {
				if low, m := unit(next[2:]); m > 0 && low >= 0xdc00 && low < 0xe000 {
					r, n = 0x10000+(r-0xd800)<<10+(low-0xdc00), n+2+m
				}
			}
			out = utf8.AppendRune(out, r)
			i += n
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// unit reads the four digits of an escape, and how many there were: 4 or 0.
func unit(s []byte) (r rune, n int) {
	if len(s) < 4 {
		return utf8.RuneError, 0
	}
	v, err := strconv.ParseUint(string(s[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError, 0
	}
	return rune(v), 4
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
