// Package yamledit changes one value of a YAML or JSON document and keeps the
// rest of its text as it is: comments, order and line ends. It knows nothing
// about what the keys mean.
package yamledit

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"ken/internal/yamldoc"
)

// ErrLayout reports a text in a layout that Set does not follow. Nothing was
// changed.
var ErrLayout = errors.New("the file is laid out in a way that cannot be edited without touching other parts of it")

// Set returns the text with the value at path replaced or added. Comments, order
// and all other values stay. Set parses its result within the limits and
// compares it with what was asked; it returns [ErrLayout] if they differ.
func Set(data []byte, path []string, v yamldoc.Value, limits yamldoc.Limits) ([]byte, error) {
	before, err := yamldoc.Parse(data, limits)
	if err != nil {
		return nil, err
	}
	want := With(before, path, v)
	if isObject(data) {
		out, err := editedJSON(data, want)
		if err != nil || !reads(out, want, limits) {
			return nil, ErrLayout
		}
		return out, nil
	}
	// Where the key stands commented out is the best place for it, unless
	// that comment is inside something else.
	for _, atComment := range []bool{true, false} {
		p := newPage(data)
		p.atComment = atComment
		p.put(region{m: before, first: 1, stop: len(p.lines) + 1, root: true}, path, v)
		if out := p.bytes(); reads(out, want, limits) {
			return out, nil
		}
	}
	return nil, ErrLayout
}

// Unset returns the text without the value at path, and without the maps that
// would be empty then. All other values, their order and their comments stay.
func Unset(data []byte, path []string, limits yamldoc.Limits) ([]byte, error) {
	before, err := yamldoc.Parse(data, limits)
	if err != nil {
		return nil, err
	}
	want := pruned(before, path)
	var out []byte
	if isObject(data) {
		out, err = editedJSON(data, want)
	} else {
		p := newPage(data)
		p.remove(region{m: before, first: 1, stop: len(p.lines) + 1, root: true}, path)
		out = p.bytes()
	}
	if err != nil || !reads(out, want, limits) {
		return nil, ErrLayout
	}
	return out, nil
}

// Has reports whether a map has a value at a path.
func Has(m *yamldoc.Map, path []string) bool {
	v, ok := m.Get(path[0])
	if !ok || len(path) == 1 {
		return ok
	}
	sub, ok := v.Any.(*yamldoc.Map)
	return ok && Has(sub, path[1:])
}

// pruned returns a map without the value at a path, and without the maps that
// only it was in.
func pruned(m *yamldoc.Map, path []string) *yamldoc.Map {
	for len(path) > 1 {
		v, _ := m.Get(path[0])
		sub, ok := v.Any.(*yamldoc.Map)
		if !ok || len(pruned(sub, path[1:]).Fields) > 0 {
			break
		}
		path = path[:1]
	}
	if len(path) == 1 {
		return Without(m, path)
	}
	v, _ := m.Get(path[0])
	sub, ok := v.Any.(*yamldoc.Map)
	if !ok {
		return m
	}
	return With(m, path[:1], yamldoc.Value{Any: pruned(sub, path[1:])})
}

// reads reports whether a text parses to the map.
func reads(data []byte, want *yamldoc.Map, limits yamldoc.Limits) bool {
	got, err := yamldoc.Parse(data, limits)
	return err == nil && Equal(got, want)
}

// With returns a map with the value at a path replaced or added.
func With(m *yamldoc.Map, path []string, v yamldoc.Value) *yamldoc.Map {
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
		v = yamldoc.Value{Any: With(sub, path[1:], v)}
	}
	out.Fields[i].Value = v
	return out
}

// Without returns a map without the value at a path.
func Without(m *yamldoc.Map, path []string) *yamldoc.Map {
	out := &yamldoc.Map{Line: m.Line}
	for _, f := range m.Fields {
		if f.Key == path[0] {
			sub, ok := f.Value.Any.(*yamldoc.Map)
			switch {
			case len(path) == 1:
				continue
			case ok:
				f.Value.Any = Without(sub, path[1:])
			}
		}
		out.Fields = append(out.Fields, f)
	}
	return out
}

// Equal reports whether two values are the same. The order of keys and the
// spelling of numbers do not matter.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case *yamldoc.Map:
		b, ok := b.(*yamldoc.Map)
		if !ok || len(a.Fields) != len(b.Fields) {
			return false
		}
		for _, f := range a.Fields {
			if v, ok := b.Get(f.Key); !ok || !Equal(f.Value.Any, v.Any) {
				return false
			}
		}
		return true
	case []yamldoc.Value:
		b, ok := b.([]yamldoc.Value)
		return ok && slices.EqualFunc(a, b, func(x, y yamldoc.Value) bool { return Equal(x.Any, y.Any) })
	}
	x, isNumber := number(a)
	y, both := number(b)
	if isNumber && both {
		return x == y
	}
	switch b.(type) {
	case *yamldoc.Map, []yamldoc.Value: // not comparable
		return false
	}
	return a == b
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

const byteOrderMark = "\ufeff"

func trimBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte(byteOrderMark)) }

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
		return nil, ErrLayout // flow YAML, perhaps with comments
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
	kept := MapNumbers(yamldoc.Value{Any: want}, func(text string, n any) any {
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

// MapNumbers returns a value with each number replaced by what instead returns
// for it. text is the number as written; numbers without a text stay.
func MapNumbers(v yamldoc.Value, instead func(text string, n any) any) yamldoc.Value {
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
			items[i] = MapNumbers(items[i], instead)
		}
		v.Any = items
	case *yamldoc.Map:
		m := &yamldoc.Map{Line: x.Line, Fields: slices.Clone(x.Fields)}
		for i := range m.Fields {
			m.Fields[i].Value = MapNumbers(m.Fields[i].Value, instead)
		}
		v.Any = m
	}
	return v
}
