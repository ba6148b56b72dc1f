package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"ken/internal/yamldoc"
)

// readJSON reads a JSON object with the line of everything. Unlike YAML it may
// be indented with tabs.
func readJSON(data []byte, mostBytes int) (*yamldoc.Map, error) {
	if len(data) > mostBytes {
		return nil, &yamldoc.Error{Message: fmt.Sprintf("the file has %d bytes, the limit is %d", len(data), mostBytes), Fix: "make it smaller"}
	}
	d := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	d.dec.UseNumber()
	v, err := d.value(0)
	if err == nil {
		if _, end := d.dec.Token(); !errors.Is(end, io.EOF) {
			err = &yamldoc.Error{Line: d.line(), Message: "text after the JSON value", Fix: "remove it"}
		}
	}
	if err != nil {
		return nil, err
	}
	m, ok := v.Any.(*yamldoc.Map)
	if !ok {
		return nil, &yamldoc.Error{Line: v.Line, Message: "the file is " + v.Kind() + ", want an object", Fix: `write {"global": {…}, "tools": {…}}`}
	}
	return m, nil
}

type jsonReader struct {
	data []byte
	dec  *json.Decoder
}

func (d *jsonReader) line() int {
	return 1 + bytes.Count(d.data[:min(int(d.dec.InputOffset()), len(d.data))], []byte("\n"))
}

func (d *jsonReader) token() (json.Token, error) {
	tok, err := d.dec.Token()
	if err != nil {
		return nil, &yamldoc.Error{Line: d.line(), Message: "invalid JSON: " + err.Error(), Fix: "check quotes, commas and brackets there"}
	}
	return tok, nil
}

func (d *jsonReader) value(depth int) (yamldoc.Value, error) {
	const deepest = 16
	tok, err := d.token()
	if err != nil {
		return yamldoc.Value{}, err
	}
	line := d.line()
	if depth > deepest {
		return yamldoc.Value{}, &yamldoc.Error{Line: line, Message: "nested too deep", Fix: "flatten it"}
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			return d.list(line, depth)
		}
		return d.object(line, depth)
	case json.Number:
		if n, err := tok.Int64(); err == nil {
			return yamldoc.Value{Line: line, Any: n, Text: tok.String()}, nil
		}
		x, err := tok.Float64()
		if err != nil {
			return yamldoc.Value{}, &yamldoc.Error{Line: line, Message: "a number is too large", Fix: "write a smaller one"}
		}
		return yamldoc.Value{Line: line, Any: x, Text: tok.String()}, nil
	case bool:
		return yamldoc.Value{Line: line, Any: tok, Text: strconv.FormatBool(tok)}, nil
	}
	return yamldoc.Value{Line: line, Any: tok}, nil
}

func (d *jsonReader) list(line, depth int) (yamldoc.Value, error) {
	items := []yamldoc.Value{}
	for d.dec.More() {
		v, err := d.value(depth + 1)
		if err != nil {
			return yamldoc.Value{}, err
		}
		items = append(items, v)
	}
	_, err := d.token()
	return yamldoc.Value{Line: line, Any: items}, err
}

func (d *jsonReader) object(line, depth int) (yamldoc.Value, error) {
	m := &yamldoc.Map{Line: line}
	for d.dec.More() {
		tok, err := d.token()
		if err != nil {
			return yamldoc.Value{}, err
		}
		f := yamldoc.Field{Key: tok.(string), Line: d.line()} // the decoder allows nothing else here
		if _, twice := m.Get(f.Key); twice {
			return yamldoc.Value{}, &yamldoc.Error{Line: f.Line, Message: fmt.Sprintf("duplicate key %q", f.Key), Fix: "keep one of them"}
		}
		if f.Value, err = d.value(depth + 1); err != nil {
			return yamldoc.Value{}, err
		}
		m.Fields = append(m.Fields, f)
	}
	_, err := d.token()
	return yamldoc.Value{Line: line, Any: m}, err
}
