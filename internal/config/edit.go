package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"ken/internal/yamldoc"
)

// errLayout says that a text is written in a way that the editor does not
// follow. Nothing was changed.
var errLayout = errors.New("the file is laid out in a way that cannot be edited without touching other parts of it")

// edited returns the text with one value put in, and with every comment, the
// order and all other values as they were. It proves that: the result is
// parsed again and compared.
func edited(data []byte, path []string, v yamldoc.Value) ([]byte, error) {
	before, err := yamldoc.Parse(data, limits())
	if err != nil {
		return nil, err
	}
	want := with(before, path, v)
	if isObject(data) {
		out, err := editedJSON(data, want)
		if err != nil || !says(out, want) {
			return nil, errLayout
		}
		return out, nil
	}
	// Where the key stands commented out is the best place for it, unless
	// that comment is inside something else.
	for _, atComment := range []bool{true, false} {
		p := newPage(data)
		p.atComment = atComment
		p.put(region{m: before, first: 1, stop: len(p.lines) + 1, root: true}, path, v)
		if out := p.bytes(); says(out, want) {
			return out, nil
		}
	}
	return nil, errLayout
}

// says reports whether a text reads as the map.
func says(data []byte, want *yamldoc.Map) bool {
	got, err := yamldoc.Parse(data, limits())
	return err == nil && equal(got, want)
}

// with returns a map with the value at a path replaced or added.
func with(m *yamldoc.Map, path []string, v yamldoc.Value) *yamldoc.Map {
	out := &yamldoc.Map{Line: m.Line, Fields: slices.Clone(m.Fields)}
	i := slices.IndexFunc(out.Fields, func(f yamldoc.Field) bool { return f.Key == path[0] })
	if i < 0 {
		out.Fields = append(out.Fields, yamldoc.Field{Key: path[0]})
		i = len(out.Fields) - 1
	}
	if len(path) > 1 {
		sub, ok := out.Fields[i].Value.Any.(*yamldoc.Map)
		if !ok {
			sub = &yamldoc.Map{}
		}
		v = yamldoc.Value{Any: with(sub, path[1:], v)}
	}
	out.Fields[i].Value = v
	return out
}

// without returns a map without the value at a path.
func without(m *yamldoc.Map, path []string) *yamldoc.Map {
	out := &yamldoc.Map{Line: m.Line}
	for _, f := range m.Fields {
		if f.Key == path[0] {
			sub, ok := f.Value.Any.(*yamldoc.Map)
			switch {
			case len(path) == 1:
				continue
			case ok:
				f.Value.Any = without(sub, path[1:])
			}
		}
		out.Fields = append(out.Fields, f)
	}
	return out
}

// equal compares values whatever the order of keys and the spelling of
// numbers.
func equal(a, b any) bool {
	switch a := a.(type) {
	case *yamldoc.Map:
		b, ok := b.(*yamldoc.Map)
		if !ok || len(a.Fields) != len(b.Fields) {
			return false
		}
		for _, f := range a.Fields {
			if v, ok := b.Get(f.Key); !ok || !equal(f.Value.Any, v.Any) {
				return false
			}
		}
		return true
	case []yamldoc.Value:
		b, ok := b.([]yamldoc.Value)
		return ok && slices.EqualFunc(a, b, func(x, y yamldoc.Value) bool { return equal(x.Any, y.Any) })
	}
	x, isNumber := number(yamldoc.Value{Any: a})
	y, both := number(yamldoc.Value{Any: b})
	if isNumber && both {
		return x == y
	}
	switch b.(type) {
	case *yamldoc.Map, []yamldoc.Value: // not comparable
		return false
	}
	return a == b
}

// isObject reports whether the whole text is one {…}.
func isObject(data []byte) bool {
	for line := range strings.Lines(string(trimBOM(data))) {
		if s := strings.TrimSpace(line); s != "" && s[0] != '#' {
			return s[0] == '{'
		}
	}
	return false
}

// editedJSON writes the whole map again, as JSON with the file's indentation:
// there are no comments in JSON that could be lost.
func editedJSON(data []byte, want *yamldoc.Map) ([]byte, error) {
	if !json.Valid(trimBOM(data)) && bytes.ContainsRune(data, '#') {
		return nil, errLayout // flow YAML, perhaps with comments
	}
	indent := "  "
	if _, rest, ok := bytes.Cut(data, []byte("\n")); ok {
		if n := len(rest) - len(bytes.TrimLeft(rest, " \t")); n > 0 {
			indent = string(rest[:n])
		}
	}
	var b bytes.Buffer
	if bytes.HasPrefix(data, []byte(byteOrderMark)) {
		b.WriteString(byteOrderMark)
	}
	kept := withNumbers(yamldoc.Value{Any: want}, func(text string, n any) any {
		if json.Valid([]byte(text)) {
			return json.Number(text)
		}
		return n
	})
	if err := json.Indent(&b, kept.JSON(), "", indent); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// withNumbers returns a value with other things in the place of its numbers, of
// which it is known how they are written.
func withNumbers(v yamldoc.Value, instead func(text string, n any) any) yamldoc.Value {
	switch x := v.Any.(type) {
	case int64, float64:
		if v.Text != "" {
			if v.Any = instead(v.Text, x); v.Any != x {
				v.Text = ""
			}
		}
	case []yamldoc.Value:
		items := slices.Clone(x)
		for i := range items {
			items[i] = withNumbers(items[i], instead)
		}
		v.Any = items
	case *yamldoc.Map:
		m := &yamldoc.Map{Line: x.Line, Fields: slices.Clone(x.Fields)}
		for i := range m.Fields {
			m.Fields[i].Value = withNumbers(m.Fields[i].Value, instead)
		}
		v.Any = m
	}
	return v
}
