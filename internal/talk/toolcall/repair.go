package toolcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ken/capability"
)

// maxRepairBytes is the most bytes of arguments that are repaired.
const maxRepairBytes = 256 << 10

// maxNoteBytes is how much of the repaired arguments a note shows, in bytes.
const maxNoteBytes = 2000

// errNotObject tells the model what is wrong with its arguments.
var errNotObject = errors.New("the arguments are not one JSON object")

// Arguments returns the JSON object that the model wrote. Invalid JSON is
// repaired once, in a way that depends on its bytes alone; note then says how it
// was read. Arguments of an answer that is not whole are not repaired: half a
// call must have no effect.
func Arguments(raw []byte, whole bool) (args json.RawMessage, note string, err error) {
	trimmed := bytes.TrimSpace(raw)
	none := len(trimmed) == 0 || string(trimmed) == "null"
	switch {
	case !none && isObject(trimmed):
		return json.RawMessage(trimmed), "", nil
	case !whole: // perhaps they would have come
		return nil, "", errors.New("the arguments end in the middle: the answer was cut off")
	case none:
		return json.RawMessage("{}"), "", nil
	case len(trimmed) > maxRepairBytes:
		return nil, "", fmt.Errorf("%w, and with more than %d bytes they are not fixed", errNotObject, maxRepairBytes)
	case !bytes.ContainsRune(trimmed, '{'):
		return nil, "", errNotObject
	}
	text := string(trimmed)
	var inner string
	if json.Unmarshal(trimmed, &inner) == nil { // an object inside a string
		text = inner
	}
	mended := json.RawMessage(mend(text))
	if !isObject(mended) {
		return nil, "", errNotObject
	}
	noted := string(mended)
	if len(noted) > maxNoteBytes {
		noted = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(noted[:maxNoteBytes], ""), len(noted))
	}
	return mended, "the arguments were not JSON and were read as " + noted, nil
}

// isObject reports whether raw is one plain JSON object, which all readers
// understand alike.
func isObject(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	_, err := capability.CanonicalJSON(raw)
	return err == nil
}

// mend makes JSON of what models write for it: fences of code around it,
// quotes of the wrong kind, commas too many, unclosed brackets. A string that is
// not closed stays so, because it is unknown how it went on.
func mend(s string) string {
	s = unfence(s)
	m := mender{in: s}
	for m.at < len(m.in) && m.step() {
	}
	for i := len(m.open) - 1; i >= 0; i-- {
		m.out.WriteByte(m.open[i])
	}
	return m.out.String() + strings.TrimSpace(m.in[m.at:])
}

// unfence takes the fence of code away.
func unfence(s string) string {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "```") {
		return s
	}
	_, s, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "```"))
}

type mender struct {
	in   string
	at   int
	open []byte // the brackets that close what is open
	next int    // what comes after the commas around at, where that is known
	out  strings.Builder
}

// step reads one token; it is false where the object is over.
func (m *mender) step() bool {
	c := m.in[m.at]
	switch c {
	case '"', '\'':
		m.quoted(c)
		return true
	case '{', '[':
		m.open = append(m.open, c+2) // } is two after {, and ] after [
	case '}', ']':
		if n := len(m.open); n > 0 && m.open[n-1] == c {
			m.open = m.open[:n-1]
		}
		m.out.WriteByte(c)
		m.at++
		return len(m.open) > 0
	case ',':
		if m.next <= m.at { // once for all commas in a row
			m.next = len(m.in) - len(strings.TrimLeft(m.in[m.at:], " \t\r\n,"))
		}
		if m.next == len(m.in) || m.in[m.next] == '}' || m.in[m.next] == ']' {
			m.at++
			return true
		}
	}
	m.out.WriteByte(c)
	m.at++
	return true
}

// quoted reads a string and writes it in double quotes.
func (m *mender) quoted(quote byte) {
	m.out.WriteByte('"')
	for m.at++; m.at < len(m.in); m.at++ {
		switch c := m.in[m.at]; {
		case c == quote:
			m.out.WriteByte('"')
			m.at++
			return
		case c == '\\' && m.at+1 < len(m.in):
			m.at++
			if next := m.in[m.at]; next != '\'' {
				m.out.WriteByte('\\')
			}
			m.out.WriteByte(m.in[m.at])
		case c == '"':
			m.out.WriteString(`\"`)
		case c == '\n':
			m.out.WriteString(`\n`)
		case c == '\t':
			m.out.WriteString(`\t`)
		case c == '\r':
			m.out.WriteString(`\r`)
		default:
			m.out.WriteByte(c)
		}
	}
	m.open = nil // it is not closed: the whole is no JSON
}
