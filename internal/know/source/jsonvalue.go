package source

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"ken/internal/yamldoc"
)

// maxJSONValues bounds what a file that is read as a whole may hold; about 100
// bytes of memory each.
const maxJSONValues = 1_000_000

// parseJSON reads JSON text as yamldoc reads YAML: in order, with the line of
// everything. The error is a *jsonError.
func parseJSON(data []byte) (yamldoc.Value, error) {
	b := jsonBuilder{walk: jsonWalk{data: data}, lines: lineCounter{data: data}, left: maxJSONValues}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		b.walk.pos = len("\ufeff")
	}
	if !utf8.Valid(data) {
		return yamldoc.Value{}, &jsonError{code: "not-utf8", offset: badUTF8(data), message: "the text is not valid UTF-8", fix: "save the file as UTF-8"}
	}
	v, err := b.value()
	if err != nil {
		return yamldoc.Value{}, err
	}
	if b.walk.space(); b.walk.pos < len(data) {
		return yamldoc.Value{}, b.walk.fail("there is more text after the JSON value", "keep one value")
	}
	return v, nil
}

// A jsonBuilder makes values of JSON text.
type jsonBuilder struct {
	walk  jsonWalk
	lines lineCounter
	left  int // how many values may still come
}

func (b *jsonBuilder) value() (yamldoc.Value, error) {
	w := &b.walk
	if b.left--; b.left < 0 {
		return yamldoc.Value{}, w.fail(fmt.Sprintf("more than %d values", maxJSONValues), "split the file")
	}
	c := w.next()
	v := yamldoc.Value{Line: b.lines.at(w.pos)}
	switch {
	case c == '{':
		m := &yamldoc.Map{Line: v.Line}
		v.Any = m
		return v, w.members(func(key []byte) error {
			at := b.lines.at(w.pos)
			member, err := b.value()
			m.Fields = append(m.Fields, yamldoc.Field{Key: unquote(key), Line: at, Value: member})
			return err
		})
	case c == '[':
		list := []yamldoc.Value{}
		err := w.items(func() error {
			item, err := b.value()
			list = append(list, item)
			return err
		})
		v.Any = list
		return v, err
	case c == '"':
		raw, err := w.str()
		v.Any = unquote(raw)
		return v, err
	}
	at := w.pos
	if err := w.value(); err != nil {
		return v, err
	}
	return v, b.scalar(&v, w.data[at:w.pos], at)
}

// scalar reads a number or a word.
func (b *jsonBuilder) scalar(v *yamldoc.Value, raw []byte, at int) error {
	switch raw[0] {
	case 't':
		v.Any = true
	case 'f':
		v.Any = false
	case 'n':
	default:
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			v.Any = n
			return nil
		}
		x, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return &jsonError{code: "bad-json", offset: at, message: "the number " + shorten(string(raw)) + " is too large", fix: "write a smaller one"}
		}
		v.Any = x
	}
	return nil
}
