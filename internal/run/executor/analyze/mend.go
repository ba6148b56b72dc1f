package analyze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/internal/yamldoc"
)

// A reading is a text taken for one JSON value, and what had to be done to it.
type reading struct {
	value json.RawMessage
	mends []string
}

// mostStarts is how many places are tried as the beginning of the value.
const mostStarts = 8

// readings returns what a text may mean, the most likely first. Values are never
// made up: what is mended is the form alone, and what is left out is told.
func readings(text string, f form) []reading {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if json.Valid([]byte(text)) {
		return append([]reading{plain(text)}, within(text)...)
	}
	var out []reading
	switch f.format {
	case formatLines:
		if r, ok := joined(text); ok {
			out = append(out, r)
		}
	case formatYAML:
		if text[0] == '{' || text[0] == '[' {
			break // nearly JSON, which is mended below
		}
		if v, err := yamldoc.ParseValue([]byte(text), yamldoc.Limits{Bytes: 256 << 10, Keys: 8000}); err == nil {
			out = append(out, plain(string(v.JSON()), "it was read as YAML"))
		}
	}
	if body, ok := unfence(text); ok {
		const note = "a code fence around it was taken off"
		if json.Valid([]byte(body)) {
			out = append(out, plain(body, note))
		} else if r, ok := mend(body); ok {
			out = append(out, plain(string(r.value), append([]string{note}, r.mends...)...))
		}
	}
	at := 0
	for range mostStarts {
		i := strings.IndexAny(text[at:], "{[")
		if i < 0 {
			break
		}
		at += i
		if r, ok := mend(text[at:]); ok {
			if at > 0 {
				r.mends = append([]string{fmt.Sprintf("%d characters before it were left out", utf8.RuneCountInString(text[:at]))}, r.mends...)
			}
			out = append(out, plain(string(r.value), r.mends...))
		}
		at++
	}
	return out
}

// within reads JSON that was written as the text of a JSON string.
func within(text string) []reading {
	var inner string
	if text[0] != '"' || json.Unmarshal([]byte(text), &inner) != nil || !json.Valid([]byte(inner)) {
		return nil
	}
	return []reading{plain(strings.TrimSpace(inner), "it was taken out of a JSON string")}
}

// plain is a reading of valid JSON. A key that is there twice is settled, since
// readers differ on what it means.
func plain(text string, mends ...string) reading {
	r := reading{json.RawMessage(text), mends}
	key, twice := repeated(text)
	if !twice {
		return r
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if dec.Decode(&v) != nil || enc.Encode(v) != nil {
		return r
	}
	r.value = bytes.TrimSpace(b.Bytes())
	r.mends = append(r.mends, fmt.Sprintf("the key %s was there twice, and the last one counts", named(key)))
	return r
}

// repeated finds a key that an object has twice.
func repeated(text string) (key string, twice bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	var open []map[string]bool // nil: a list
	isKey := false
	for {
		tok, err := dec.Token()
		if err != nil {
			return "", false
		}
		inObject := func() bool { return len(open) > 0 && open[len(open)-1] != nil }
		switch tok {
		case json.Delim('{'):
			open, isKey = append(open, map[string]bool{}), true
			continue
		case json.Delim('['):
			open, isKey = append(open, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			isKey = inObject()
			continue
		}
		if name, ok := tok.(string); ok && isKey {
			if open[len(open)-1][name] {
				return name, true
			}
			open[len(open)-1][name] = true
			isKey = false
			continue
		}
		isKey = inObject()
	}
}

// joined makes one list of JSON lines.
func joined(text string) (reading, bool) {
	var items []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !json.Valid([]byte(line)) {
			return reading{}, false
		}
		items = append(items, line)
	}
	return plain("["+strings.Join(items, ",")+"]", fmt.Sprintf("its %d lines were read as one list", len(items))), true
}

// unfence returns the inside of the first Markdown code fence.
func unfence(text string) (string, bool) {
	_, rest, ok := strings.Cut(text, "```")
	if !ok {
		return "", false
	}
	_, rest, ok = strings.Cut(rest, "\n") // the word after the fence
	if !ok {
		return "", false
	}
	body, _, _ := strings.Cut(rest, "```")
	return strings.TrimSpace(body), true
}

// A mender copies a text that is nearly JSON, and writes down what it changes.
type mender struct {
	in    string
	at    int
	out   []byte
	open  []byte // the brackets that are open
	mends []string

	comma int // where in out the last comma is, with nothing after it; -1: none
}

func (m *mender) note(what string) {
	if !slices.Contains(m.mends, what) {
		m.mends = append(m.mends, what)
	}
}

// mend reads the value that a text begins with, an object or a list. It mends
// commas before a closing bracket, other quotes, keys without quotes, raw line
// breaks in strings, comments, Python's words, and unclosed brackets.
func mend(text string) (reading, bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' && text[0] != '[' {
		return reading{}, false
	}
	m := mender{in: text, comma: -1}
	for m.at < len(m.in) {
		if !m.step() {
			return reading{}, false
		}
		if len(m.open) == 0 {
			break
		}
	}
	if n := len(m.open); n > 0 {
		m.dropComma()
		for len(m.open) > 0 {
			m.shut()
		}
		m.note(fmt.Sprintf("%d open brackets were closed at its end; it may have been cut off there", n))
	}
	if rest := strings.TrimSpace(m.in[m.at:]); rest != "" {
		m.note(fmt.Sprintf("%d characters after it were left out", utf8.RuneCountInString(rest)))
	}
	return reading{m.out, m.mends}, json.Valid(m.out)
}

// step reads one token.
func (m *mender) step() bool {
	c := m.in[m.at]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		m.at++
		m.out = append(m.out, c)
	case c == '{' || c == '[':
		m.put(1)
		m.open = append(m.open, c)
	case c == '}' || c == ']':
		return m.close(c)
	case c == '"' || c == '\'':
		m.quoted(c)
	case c == ',':
		m.put(1)
		m.comma = len(m.out) - 1
	case c == ':':
		m.put(1)
	case c == '-' || c >= '0' && c <= '9':
		n := 1
		for m.at+n < len(m.in) && strings.IndexByte("+-.0123456789eE", m.in[m.at+n]) >= 0 {
			n++
		}
		m.put(n)
	case c == '/':
		return m.comment()
	default:
		return m.word()
	}
	return true
}

// put copies n bytes.
func (m *mender) put(n int) {
	m.out = append(m.out, m.in[m.at:m.at+n]...)
	m.at += n
	m.comma = -1
}

func (m *mender) dropComma() {
	if m.comma >= 0 {
		m.out = slices.Delete(m.out, m.comma, m.comma+1)
		m.comma = -1
		m.note("commas before a closing bracket were left out")
	}
}

// shut closes the innermost bracket.
func (m *mender) shut() {
	last := len(m.open) - 1
	closing := byte('}')
	if m.open[last] == '[' {
		closing = ']'
	}
	m.out = append(m.out, closing)
	m.open = m.open[:last]
	m.comma = -1
}

// close reads a closing bracket, and closes before it what is open within.
func (m *mender) close(c byte) bool {
	m.dropComma()
	opening := byte('{')
	if c == ']' {
		opening = '['
	}
	i := bytes.LastIndexByte(m.open, opening)
	if i < 0 {
		return false
	}
	for len(m.open) > i+1 {
		m.shut()
		m.note("brackets that were open within others were closed")
	}
	m.shut()
	m.at++
	return true
}

// quoted reads a string in quotes of either kind, to its end or the text's.
func (m *mender) quoted(quote byte) {
	if quote == '\'' {
		m.note("single quotes were made double")
	}
	m.comma = -1
	m.out = append(m.out, '"')
	for m.at++; m.at < len(m.in); m.at++ {
		c := m.in[m.at]
		switch {
		case c == quote:
			m.at++
			m.out = append(m.out, '"')
			return
		case c == '\\' && m.at+1 < len(m.in):
			m.at++
			if m.in[m.at] == '\'' {
				m.out = append(m.out, '\'') // JSON knows no such escape
			} else {
				m.out = append(m.out, '\\', m.in[m.at])
			}
		case c == '"': // within single quotes
			m.out = append(m.out, '\\', '"')
		case c < ' ':
			m.out = fmt.Appendf(m.out, "\\u%04x", c)
			m.note("line breaks and the like in strings were escaped")
		default:
			m.out = append(m.out, c)
		}
	}
	m.out = append(m.out, '"')
	m.note("a string that was open at its end was closed; it may have been cut off there")
}

// comment leaves a comment out.
func (m *mender) comment() bool {
	rest := m.in[m.at:]
	end := 0
	switch {
	case strings.HasPrefix(rest, "//"):
		if end = strings.IndexByte(rest, '\n'); end < 0 {
			end = len(rest)
		}
	case strings.HasPrefix(rest, "/*"):
		i := strings.Index(rest, "*/")
		if i < 0 {
			return false
		}
		end = i + 2
	default:
		return false
	}
	m.at += end
	m.note("comments were left out")
	return true
}

// word reads a word without quotes: a literal, or a key.
func (m *mender) word() bool {
	n := 0
	for m.at+n < len(m.in) {
		c := m.in[m.at+n]
		if c < utf8.RuneSelf && c != '_' && c != '$' && (c != '-' || n == 0) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			break
		}
		n++
	}
	if n == 0 {
		return false
	}
	word := m.in[m.at : m.at+n]
	key := strings.HasPrefix(strings.TrimLeft(m.in[m.at+n:min(len(m.in), m.at+n+64)], " \t\r\n"), ":")
	to := map[string]string{"True": "true", "False": "false", "None": "null"}[word]
	switch {
	case key:
		quoted, _ := json.Marshal(word) // a string cannot fail
		m.out = append(m.out, quoted...)
		m.note("keys without quotes were quoted")
	case word == "true" || word == "false" || word == "null":
		m.out = append(m.out, word...)
	case to != "":
		m.out = append(m.out, to...)
		m.note("True, False and None were written as JSON does")
	default:
		return false
	}
	m.at += n
	m.comma = -1
	return true
}
