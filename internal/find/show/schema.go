package show

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/untrusted"
)

const (
	maxSchemaBytes = 256 << 10 // larger schemas are shown by their parameters only
	maxProperties  = 64        // lines of a schema; the rest is counted
	maxEnum        = 16        // values of an enumeration; the rest is counted
)

// A property is one line of an input schema.
type property struct {
	name, typ, desc, enum, def string
	required                   bool
}

// line renders "  name (type, required): desc [a|b] (default: x)". The parts
// are rendered already, except the name.
func (p property) line() string {
	var b strings.Builder
	b.WriteString("  " + cmpOr(untrusted.Line(p.name, 100), `""`) + " (" + cmpOr(p.typ, "any"))
	if p.required {
		b.WriteString(", required")
	}
	b.WriteString(")")
	sep := ": "
	for _, part := range []string{p.desc, p.enum, p.def} {
		if part != "" {
			b.WriteString(sep + part)
			sep = " "
		}
	}
	return b.String()
}

func cmpOr(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// declared returns the properties that the catalog knows without the schema.
func declared(params []capability.Parameter) (list []property, more int) {
	for _, p := range params {
		if len(list) == maxProperties {
			return list, len(params) - maxProperties
		}
		list = append(list, property{
			name: p.Name, typ: untrusted.Line(p.Type, 40), desc: untrusted.Line(p.Description, 300), required: p.Required,
		})
	}
	return list, 0
}

// A node is what is read of a JSON Schema. Parts stay raw, so that a strange one
// costs only itself.
type node struct {
	Type        json.RawMessage            `json:"type"`
	Description json.RawMessage            `json:"description"`
	Properties  json.RawMessage            `json:"properties"`
	Required    json.RawMessage            `json:"required"`
	Enum        json.RawMessage            `json:"enum"`
	Const       json.RawMessage            `json:"const"`
	Default     json.RawMessage            `json:"default"`
	Items       json.RawMessage            `json:"items"`
	AnyOf       []json.RawMessage          `json:"anyOf"`
	OneOf       []json.RawMessage          `json:"oneOf"`
	Ref         string                     `json:"$ref"`
	Defs        map[string]json.RawMessage `json:"$defs"`
	Definitions map[string]json.RawMessage `json:"definitions"`
}

// A schema reads the properties of one JSON Schema.
type schema struct {
	root node
	list []property
	more int // properties beyond maxProperties
}

// readSchema returns the properties of a JSON Schema in their order, those of
// objects in it, one level deep, with dotted names.
func readSchema(raw json.RawMessage) (list []property, more int, err error) {
	if len(raw) > maxSchemaBytes {
		return nil, 0, errors.New("schema is larger than 256 KiB")
	}
	var s schema
	if !json.Valid(raw) || json.Unmarshal(raw, &s.root) != nil {
		return nil, 0, errors.New("schema is not a readable JSON object")
	}
	s.object(s.root, "", true, 0)
	return s.list, s.more, nil
}

// object appends the properties of n, each with prefix before its name.
func (s *schema) object(n node, prefix string, required bool, depth int) {
	var must []any
	_ = json.Unmarshal(n.Required, &must) // not a list: nothing is required
	for name, raw := range members(n.Properties) {
		p := s.node(raw)
		if len(s.list) >= maxProperties {
			s.more++
			continue
		}
		req := required && slices.Contains(must, any(name))
		s.list = append(s.list, s.property(p, prefix+name, req))
		if depth > 0 {
			continue
		}
		s.object(p, prefix+name+".", req, depth+1)
		if p.Items != nil {
			s.object(s.node(p.Items), prefix+name+"[].", req, depth+1)
		}
	}
}

// node reads raw, or what it refers to in the same schema.
func (s *schema) node(raw json.RawMessage) (n node) {
	_ = json.Unmarshal(raw, &n) // what cannot be read stays empty
	if n.Ref == "" {
		return n
	}
	var at node
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		_ = json.Unmarshal(s.root.Defs[name], &at)
	} else if name, ok := strings.CutPrefix(n.Ref, "#/definitions/"); ok {
		_ = json.Unmarshal(s.root.Definitions[name], &at)
	}
	if len(n.Description) > 0 {
		at.Description = n.Description
	}
	if len(n.Default) > 0 {
		at.Default = n.Default
	}
	return at
}

func (s *schema) property(n node, name string, required bool) property {
	p := property{name: name, typ: untrusted.Line(s.typeOf(n, 0), 60), required: required}
	var desc string
	_ = json.Unmarshal(n.Description, &desc)
	p.desc = untrusted.Line(desc, 300)
	enum := n.Enum
	if enum == nil && n.Items != nil {
		enum = s.node(n.Items).Enum
	}
	p.enum = enumText(enum)
	if n.Const != nil {
		p.enum = "[" + untrusted.Line(plainJSON(n.Const), 60) + "]"
	}
	if len(n.Default) > 0 && string(n.Default) != "null" {
		p.def = "(default: " + untrusted.Line(compactJSON(n.Default), 60) + ")"
	}
	return p
}

// typeOf names the type of a property: string, string|null, number[].
func (s *schema) typeOf(n node, depth int) string {
	var one string
	var several []string
	switch {
	case depth > 2:
	case n.Type != nil:
		if json.Unmarshal(n.Type, &one) != nil {
			_ = json.Unmarshal(n.Type, &several)
			one = strings.Join(several, "|")
		}
		if one == "array" && n.Items != nil {
			if of := s.typeOf(s.node(n.Items), depth+1); of != "" {
				one = of + "[]"
			}
		}
	default:
		for _, raw := range append(slices.Clip(n.AnyOf), n.OneOf...) {
			if t := s.typeOf(s.node(raw), depth+1); t != "" && !slices.Contains(several, t) && len(several) < 6 {
				several = append(several, t)
			}
		}
		one = strings.Join(several, "|")
	}
	if one == "" && n.Properties != nil {
		return "object"
	}
	return one
}

// enumText renders [a|b|c].
func enumText(raw json.RawMessage) string {
	var values []json.RawMessage
	if json.Unmarshal(raw, &values) != nil || len(values) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			b.WriteByte('|')
		}
		if i == maxEnum {
			b.WriteString("+" + plural(len(values)-i, "value", "values"))
			break
		}
		b.WriteString(untrusted.Line(plainJSON(v), 40))
	}
	b.WriteByte(']')
	return b.String()
}

// plainJSON returns a string without its quotes and everything else as it is.
func plainJSON(raw json.RawMessage) string {
	var s *string
	if json.Unmarshal(raw, &s) == nil && s != nil {
		return *s
	}
	return compactJSON(raw)
}

func compactJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// members yields the members of a JSON object in their order.
func members(raw json.RawMessage) func(yield func(string, json.RawMessage) bool) {
	return func(yield func(string, json.RawMessage) bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if t, err := dec.Token(); err != nil || t != json.Delim('{') {
			return
		}
		for dec.More() {
			t, err := dec.Token()
			name, ok := t.(string)
			if err != nil || !ok {
				return
			}
			var v json.RawMessage
			if dec.Decode(&v) != nil || !yield(name, v) {
				return
			}
		}
	}
}
