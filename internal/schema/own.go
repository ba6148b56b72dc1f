package schema

import (
	"bytes"
	"encoding/json"
	"strings"
)

// own begins the words in a schema that are for Ken alone: how a command line is
// read, where an argument goes.
const own = "x-ken-"

// WithoutOwn returns a schema without Ken's own words, as a model or another
// program is given it. All else stays as it is and in its order. What is not JSON
// is given back.
func WithoutOwn(schema json.RawMessage) json.RawMessage {
	if !bytes.Contains(schema, []byte(`"`+own)) {
		return schema
	}
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	w := writer{d: d}
	if err := w.value(false); err != nil {
		return schema
	}
	return w.out
}

// A writer writes what a decoder reads, but for own words.
type writer struct {
	d   *json.Decoder
	out []byte
}

// value writes the next value. Where it is an object and names, what stands in it
// are names of the schema's own choosing, such as those of properties.
func (w *writer) value(names bool) error {
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	open, is := t.(json.Delim)
	if !is {
		return w.put(t)
	}
	w.out = append(w.out, byte(open))
	for first := true; w.d.More(); {
		if open == '{' {
			kept, err := w.member(names, first)
			if err != nil {
				return err
			}
			first = first && !kept
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		if err := w.value(false); err != nil {
			return err
		}
	}
	t, err = w.d.Token()
	if err == nil {
		w.out = append(w.out, byte(t.(json.Delim)))
	}
	return err
}

// member writes a member of an object, and says whether it did.
func (w *writer) member(names, first bool) (kept bool, err error) {
	t, err := w.d.Token()
	if err != nil {
		return false, err
	}
	name := t.(string) // of a member it is one
	if !names && strings.HasPrefix(name, own) {
		var skipped json.RawMessage
		return false, w.d.Decode(&skipped)
	}
	if !first {
		w.out = append(w.out, ',')
	}
	if err := w.put(name); err != nil {
		return false, err
	}
	w.out = append(w.out, ':')
	switch name {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return true, w.value(!names)
	}
	return true, w.value(false)
}

func (w *writer) put(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	w.out = append(w.out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
	return err
}
