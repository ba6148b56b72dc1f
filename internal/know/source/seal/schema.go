package seal

import (
	"encoding/json"
	"strings"

	"ken/capability"
	"ken/internal/know/source/jsonscan"
)

// Parameters lists the top-level properties of an input schema in the order
// in which they are written. A schema that it cannot read has none.
func Parameters(schema json.RawMessage) []capability.Parameter {
	if len(schema) == 0 {
		return nil
	}
	properties, required := 0, 0 // where they are; never at the first byte
	w := jsonscan.Scanner{Data: schema, Loose: true}
	if w.Next() != '{' || w.Object(func(key []byte, at, _ int) error {
		switch string(key) {
		case "properties":
			properties = at
		case "required":
			required = at
		}
		return nil
	}) != nil || properties == 0 || schema[properties] != '{' {
		return nil
	}
	var params []capability.Parameter
	w = jsonscan.Scanner{Data: schema, Pos: properties, Loose: true}
	_ = w.Object(func(key []byte, at, _ int) error { // it was read once already
		p := capability.Parameter{Name: jsonscan.Unquote(key)}
		p.Type, p.Description = propertyOf(schema, at)
		params = append(params, p)
		return nil
	})
	if names := textsAt(schema, required); len(names) > 0 {
		needed := make(map[string]bool, len(names))
		for _, name := range names {
			needed[name] = true
		}
		for i, p := range params {
			params[i].Required = needed[p.Name]
		}
	}
	return params
}

// propertyOf reads the type and the description of the schema that begins at a
// byte of valid JSON.
func propertyOf(data []byte, at int) (word, description string) {
	if data[at] != '{' {
		return "", ""
	}
	w := jsonscan.Scanner{Data: data, Pos: at, Loose: true}
	_ = w.Object(func(key []byte, at, end int) error {
		switch string(key) {
		case "type":
			if data[at] == '"' {
				word = typeWord(data[at+1 : end-1])
			} else {
				word = strings.Join(textsAt(data, at), "|")
			}
		case "description":
			if data[at] == '"' {
				description = jsonscan.Unquote(data[at+1 : end-1])
			}
		}
		return nil
	})
	return word, description
}

// typeWord returns a schema's type; the usual ones cost no memory.
func typeWord(raw []byte) string {
	switch string(raw) {
	case "string":
		return "string"
	case "number":
		return "number"
	case "integer":
		return "integer"
	case "boolean":
		return "boolean"
	case "object":
		return "object"
	case "array":
		return "array"
	}
	return jsonscan.Unquote(raw)
}

// textsAt returns the texts of the array that begins at a byte of valid JSON,
// and none where something else does. Byte 0 stands for nowhere.
func textsAt(data []byte, at int) []string {
	if at == 0 || data[at] != '[' {
		return nil
	}
	var texts []string
	w := jsonscan.Scanner{Data: data, Pos: at, Loose: true}
	_ = w.Array(func(at, end int) error {
		if data[at] == '"' {
			texts = append(texts, jsonscan.Unquote(data[at+1:end-1]))
		}
		return nil
	})
	return texts
}

// SchemaText gathers the texts of a schema that a model reads: names,
// descriptions, titles, defaults, enums; each a paragraph. What is not JSON is
// given as it stands, so that nothing escapes the scan.
func SchemaText(schema json.RawMessage) string {
	text := make([]byte, 0, len(schema))
	w := jsonscan.Scanner{Data: schema, Loose: true, Text: &text}
	if w.Check() != nil {
		text = append(text, schema...)
	}
	return string(text)
}
