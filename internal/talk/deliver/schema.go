package deliver

import (
	"bytes"
	"encoding/json"

	"ken/internal/schema"
)

// Slim returns a schema as every wire takes it, in as few bytes as it can: without
// its spelling and Ken's own words, without "$schema" at its top, which names the
// dialect and which models do not read, with the type that it must have, and with what wires
// refuse at the top of a schema (anyOf, oneOf, allOf) said in its description,
// where a model reads it all the same. Calls are validated by the schema as it
// was. All else stays, in its order. What is not a JSON object is given back as
// it is.
func Slim(given json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, given) != nil {
		return given
	}
	plain := schema.WithoutOwn(b.Bytes())
	if !bytes.HasPrefix(plain, []byte("{")) || fits(plain) {
		return plain
	}
	fields, err := fieldsOf(plain)
	if err != nil {
		return plain
	}
	return fields.schema()
}

// fits reports whether a schema need not be looked into.
func fits(plain []byte) bool {
	if !bytes.HasPrefix(plain, []byte(`{"type":"object"`)) {
		return false
	}
	for _, word := range []string{`"$schema"`, `"anyOf"`, `"oneOf"`, `"allOf"`, `,"type":`, `\u`} {
		if bytes.Contains(plain, []byte(word)) {
			return false
		}
	}
	return true
}

// A field is one of an object, in its bytes.
type field struct {
	name       string
	raw, value []byte
}

type fields []field

func fieldsOf(plain []byte) (out fields, err error) {
	d := json.NewDecoder(bytes.NewReader(plain))
	if _, err := d.Token(); err != nil { // the opening brace
		return nil, err
	}
	for d.More() {
		start := d.InputOffset()
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		out = append(out, field{name.(string), bytes.TrimPrefix(plain[start:d.InputOffset()], []byte(",")), value})
	}
	return out, nil
}

// schema writes the fields as a wire takes them.
func (f fields) schema() []byte {
	var about string
	var moved []byte
	typed := false
	for _, x := range f {
		switch x.name {
		case "type":
			typed = typed || string(x.value) == `"object"`
		case "description":
			_ = json.Unmarshal(x.value, &about) // what is no text says nothing
		case "anyOf", "oneOf", "allOf":
			moved = joined(moved, x.raw)
		}
	}
	var out []byte
	if !typed {
		out = joined(out, []byte(`"type":"object"`))
	}
	for _, x := range f {
		switch x.name {
		case "$schema", "anyOf", "oneOf", "allOf":
		case "type":
			if typed {
				out = joined(out, []byte(`"type":"object"`))
				typed = false // once
			}
		case "description":
			if moved == nil {
				out = joined(out, x.raw)
			}
		default:
			out = joined(out, x.raw)
		}
	}
	if moved != nil {
		if about != "" {
			about += " "
		}
		text, _ := json.Marshal(about + "Must also fit: {" + string(moved) + "}") // a text always marshals
		out = joined(out, append([]byte(`"description":`), text...))
	}
	return append(append([]byte{'{'}, out...), '}')
}

func joined(list, more []byte) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return append(list, more...)
}
