package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"ken/capability"
)

// parametersOf lists the top-level properties of an input schema in the order
// in which they are written. A schema that it cannot read has none.
func parametersOf(schema json.RawMessage) []capability.Parameter {
	if len(schema) == 0 {
		return nil
	}
	var top struct {
		Properties json.RawMessage `json:"properties"`
		Required   any             `json:"required"`
	}
	if json.Unmarshal(schema, &top) != nil || len(top.Properties) == 0 {
		return nil
	}
	var params []capability.Parameter
	_ = eachField(top.Properties, func(name string, raw json.RawMessage) {
		p := capability.Parameter{Name: name, Required: requires(top.Required, name)}
		var prop struct {
			Type        any    `json:"type"`
			Description string `json:"description"`
		}
		if json.Unmarshal(raw, &prop) == nil {
			p.Description, p.Type = prop.Description, typeWord(prop.Type)
		}
		params = append(params, p)
	})
	return params
}

func requires(required any, name string) bool {
	list, _ := required.([]any)
	return slices.ContainsFunc(list, func(v any) bool { return v == name })
}

// typeWord gives a schema's type as one word: "string", or "string|null".
func typeWord(t any) string {
	switch t := t.(type) {
	case string:
		return t
	case []any:
		var words []string
		for _, v := range t {
			if s, ok := v.(string); ok {
				words = append(words, s)
			}
		}
		return strings.Join(words, "|")
	}
	return ""
}

// eachField calls f for the fields of a JSON object in their order.
func eachField(object json.RawMessage, f func(name string, value json.RawMessage)) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	if tok != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		f(key.(string), value)
	}
	return nil
}

// schemaText gathers the texts of a schema that a model reads: names,
// descriptions, titles, defaults, enums; one per line.
func schemaText(schema json.RawMessage) string {
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(schema))
	for {
		tok, err := dec.Token()
		if err != nil {
			return b.String()
		}
		if s, ok := tok.(string); ok {
			b.WriteString(s)
			b.WriteByte('\n')
		}
	}
}
