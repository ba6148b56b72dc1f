package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/internal/coldsort"
	"ken/internal/run/executor"
)

// A schema is what Argv wants of an input schema.
type schema struct {
	properties []property // in the order of the document
	required   []string
}

type property struct {
	name     string
	types    []string
	flag     string
	position int
	choices  []any
	standard any
	has      bool // a default
}

// readSchema keeps the order of the properties, which a map would lose.
func readSchema(raw json.RawMessage) (schema, error) {
	bad := errors.New("the action's schema is not a JSON Schema of an object")
	if len(bytes.TrimSpace(raw)) == 0 {
		return schema{}, nil // it takes no arguments
	}
	var doc struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(raw, &doc) != nil {
		return schema{}, bad
	}
	s := schema{required: doc.Required}
	if len(doc.Properties) == 0 {
		return s, nil
	}
	dec := json.NewDecoder(bytes.NewReader(doc.Properties))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return schema{}, bad
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return schema{}, bad
		}
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return schema{}, bad
		}
		name, _ := key.(string) // the decoder allows nothing else here
		s.properties = append(s.properties, readProperty(name, one))
	}
	return s, nil
}

func readProperty(name string, raw json.RawMessage) property {
	var doc struct {
		Type     json.RawMessage `json:"type"`
		Flag     string          `json:"x-ken-flag"`
		Position int             `json:"x-ken-position"`
		Enum     json.RawMessage `json:"enum"`
		Default  json.RawMessage `json:"default"`
	}
	p := property{name: name}
	if json.Unmarshal(raw, &doc) != nil {
		return p // "true" is a schema too, and says nothing
	}
	p.flag, p.position = doc.Flag, doc.Position
	if one := ""; json.Unmarshal(doc.Type, &one) == nil && one != "" {
		p.types = []string{one}
	} else {
		json.Unmarshal(doc.Type, &p.types) // absent or strange: any type
	}
	if v, err := decode(doc.Enum); err == nil {
		p.choices, _ = v.([]any)
	}
	if v, err := decode(doc.Default); err == nil && v != nil {
		p.standard, p.has = v, true
	}
	return p
}

func decode(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// positional returns the arguments without a flag, in their places.
func (s schema) positional() []property {
	var out []property
	for _, p := range s.properties {
		if p.flag == "" {
			out = append(out, p)
		}
	}
	coldsort.Stable(out, func(a, b property) int { return a.position - b.position })
	return out
}

func (s schema) find(name string) (property, bool) {
	for _, p := range s.properties {
		if p.name == name {
			return p, true
		}
	}
	return property{}, false
}

// isSwitch reports whether the property is a flag that is there or not. The
// word that the program is given is the schema's, never the caller's.
func (p property) isSwitch() bool {
	return p.flag != "" && slices.Equal(p.types, []string{"boolean"})
}

// numeric reports whether a parameter can only be a number.
func (s schema) numeric(name string) bool {
	p, ok := s.find(name)
	return ok && len(p.types) > 0 && !slices.ContainsFunc(p.types, func(t string) bool { return t != "integer" && t != "number" })
}

// values reads the arguments, checks them against what the schema says of
// them, and adds the defaults.
func (s schema) values(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := executor.Unique(raw); err != nil {
		return nil, err
	}
	v, err := decode(raw)
	values, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, errors.New("the arguments are not a JSON object")
	}
	for name, v := range values {
		p, ok := s.find(name)
		if !ok {
			return nil, fmt.Errorf("unknown argument %.40q; the arguments are %s", name, s.names())
		}
		if v == nil {
			delete(values, name)
			continue
		}
		if err := p.check(v); err != nil {
			return nil, err
		}
	}
	for _, p := range s.properties {
		if _, given := values[p.name]; !given && p.has {
			values[p.name] = p.standard
		}
	}
	for _, name := range s.required {
		if _, given := values[name]; !given {
			return nil, fmt.Errorf("%s is missing", name)
		}
	}
	return values, nil
}

func (s schema) names() string {
	var names []string
	for _, p := range s.properties {
		names = append(names, p.name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (p property) check(v any) error {
	if len(p.types) > 0 && !slices.ContainsFunc(p.types, func(t string) bool { return isType(t, v) }) {
		return fmt.Errorf("%s is not of the type %s", p.name, strings.Join(p.types, " or "))
	}
	if len(p.choices) > 0 && !slices.Contains(p.choices, plainValue(v)) {
		return fmt.Errorf("%s is not one of its allowed values", p.name)
	}
	return nil
}

// plainValue returns a value that can be compared; a list or an object is equal
// to nothing.
func plainValue(v any) any {
	switch v.(type) {
	case []any, map[string]any:
		return nil
	}
	return v
}

func isType(t string, v any) bool {
	switch v := v.(type) {
	case string:
		return t == "string"
	case bool:
		return t == "boolean"
	case json.Number:
		if t == "integer" {
			_, err := v.Int64()
			return err == nil
		}
		return t == "number"
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	}
	return false
}
