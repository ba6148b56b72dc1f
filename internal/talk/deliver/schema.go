package deliver

import (
	"bytes"
	"encoding/json"
)

// Slim gives a schema without its spelling and without "$schema" at its top,
// which names the dialect: every wire has its own, and models read nothing in
// it. All else stays, in its order. What is not a JSON object is given back as
// it is.
func Slim(schema json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, schema) != nil {
		return schema
	}
	plain := b.Bytes()
	if !bytes.HasPrefix(plain, []byte("{")) || !bytes.Contains(plain, []byte(`"$schema"`)) {
		return plain
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	out := make([]byte, 0, len(plain))
	out = append(out, '{')
	if _, err := d.Token(); err != nil { // the opening brace
		return plain
	}
	for d.More() {
		start := d.InputOffset()
		key, err := d.Token()
		if err != nil {
			return plain
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return plain
		}
		if key == "$schema" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, bytes.TrimPrefix(plain[start:d.InputOffset()], []byte(","))...)
	}
	return append(out, '}')
}
