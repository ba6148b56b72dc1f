package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// decodeUnique decodes JSON and refuses an object that names a key twice,
// because two readers would disagree about what it says.
func decodeUnique(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON value; send exactly one")
	}
	return v, nil
}

const maxDepth = 200

func decodeValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		return decodeObject(dec, depth)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := decodeValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return tok, nil
}

func decodeObject(dec *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key := tok.(string) // the decoder allows nothing else here
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("key %q appears twice; name it once", key)
		}
		v, err := decodeValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		object[key] = v
	}
	_, err := dec.Token()
	return object, err
}
