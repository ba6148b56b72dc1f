package openapi

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"ken/internal/know/source/jsonscan"
	"ken/internal/yamldoc"
)

// MaxValues bounds what a file that is read as a whole may hold; about 100
// bytes of memory each.
const MaxValues = 1_000_000

// parseJSON reads JSON text as yamldoc reads YAML: in order, with the line of
// everything. The error is a *Error.
func parseJSON(data []byte) (yamldoc.Value, error) {
	b := jsonBuilder{walk: jsonscan.Scanner{Data: data}, lines: jsonscan.LineCounter{Data: data}, left: MaxValues}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		b.walk.Pos = len("\ufeff")
	}
	if !utf8.Valid(data) {
		return yamldoc.Value{}, &jsonscan.Error{Code: "not-utf8", Offset: jsonscan.FirstInvalid(data), Message: "the text is not valid UTF-8", Fix: "save the file as UTF-8"}
	}
	v, err := b.value()
	if err != nil {
		return yamldoc.Value{}, err
	}
	if b.walk.Space(); b.walk.Pos < len(data) {
		return yamldoc.Value{}, b.walk.Fail("there is more text after the JSON value", "keep one value")
	}
	return v, nil
}

// A jsonBuilder makes values of JSON text.
type jsonBuilder struct {
	walk  jsonscan.Scanner
	lines jsonscan.LineCounter
	left  int // how many values may still come
}

func (b *jsonBuilder) value() (yamldoc.Value, error) {
	w := &b.walk
	if b.left--; b.left < 0 {
		return yamldoc.Value{}, w.Fail(fmt.Sprintf("more than %d values", MaxValues), "split the file")
	}
	c := w.Next()
	v := yamldoc.Value{Line: b.lines.At(w.Pos)}
	switch {
	case c == '{':
		m := &yamldoc.Map{Line: v.Line}
		v.Any = m
		return v, w.Members(func(key []byte) error {
			at := b.lines.At(w.Pos)
			member, err := b.value()
			m.Fields = append(m.Fields, yamldoc.Field{Key: jsonscan.Unquote(key), Line: at, Value: member})
			return err
		})
	case c == '[':
		list := []yamldoc.Value{}
		err := w.Items(func() error {
			item, err := b.value()
			list = append(list, item)
			return err
		})
		v.Any = list
		return v, err
	case c == '"':
		raw, err := w.RawString()
		v.Any = jsonscan.Unquote(raw)
		return v, err
	}
	at := w.Pos
	if err := w.Value(); err != nil {
		return v, err
	}
	return v, b.scalar(&v, w.Data[at:w.Pos], at)
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
			return &jsonscan.Error{Code: "bad-json", Offset: at, Message: "the number " + jsonscan.Shorten(string(raw)) + " is too large", Fix: "write a smaller one"}
		}
		v.Any = x
	}
	return nil
}
