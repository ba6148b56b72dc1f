package runner

import (
	"math"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// A checker is a compiled schema. Most schemas of tools say no more than which
// arguments there are and of what type: for those a quickSchema says yes quickly, and
// the validator is asked only where it does not.
type checker struct {
	*jsonschema.Resolved
	quick *quickSchema // nil: the schema says more than a quickSchema can
}

// fits reports whether the validator accepts value.
func (c checker) fits(value any) bool {
	return c.quick != nil && c.quick.fits(value) || c.Validate(value) == nil
}

// A quickSchema is a schema of few words. Its zero value fits everything.
type quickSchema struct {
	kind     string // "" is any
	enum     []string
	min, max float64
	props    map[string]*quickSchema
	closed   bool // no properties but props
	required []string
	items    *quickSchema // nil is any
}

// quickSchemaOf returns s as a quickSchema, or nil where that would leave something out.
func quickSchemaOf(s *jsonschema.Schema, depth int) *quickSchema {
	if s == nil || depth > 32 {
		return nil
	}
	p := &quickSchema{kind: s.Type, min: math.Inf(-1), max: math.Inf(1), required: s.Required}
	if s.Minimum != nil {
		p.min = *s.Minimum
	}
	if s.Maximum != nil {
		p.max = *s.Maximum
	}
	for _, e := range s.Enum {
		text, ok := e.(string)
		if !ok || s.Type != "string" {
			return nil
		}
		p.enum = append(p.enum, text)
	}
	if s.Items != nil {
		if p.items = quickSchemaOf(s.Items, depth+1); p.items == nil {
			return nil
		}
	}
	if a := s.AdditionalProperties; a != nil {
		if !reflect.DeepEqual(a, nothing()) {
			return nil
		}
		p.closed = true
	}
	p.props = make(map[string]*quickSchema, len(s.Properties))
	for name, one := range s.Properties {
		if p.props[name] = quickSchemaOf(one, depth+1); p.props[name] == nil {
			return nil
		}
	}
	if p.kind == "" && (p.closed || len(p.props) > 0 || len(p.required) > 0 || p.items != nil || s.Minimum != nil || s.Maximum != nil) {
		return nil // words that count for one type of value only
	}
	if !onlyQuick(*s) {
		return nil
	}
	return p
}

// onlyQuick reports whether s has no words but those that quickSchemaOf reads and
// those that check nothing. A word that the validator learns later counts as
// one that it does not know.
func onlyQuick(s jsonschema.Schema) bool {
	s.Type, s.Enum, s.Minimum, s.Maximum, s.Items, s.Properties, s.AdditionalProperties, s.Required = "", nil, nil, nil, nil, nil, nil, nil
	s.Schema, s.Comment, s.Title, s.Description, s.Default, s.Examples, s.Format = "", "", "", "", nil, nil, ""
	s.Deprecated, s.ReadOnly, s.WriteOnly, s.PropertyOrder = false, false, false, nil
	s.Extra = nil // words that the validator does not know; it checks nothing by them
	return reflect.ValueOf(s).IsZero()
}

// fits reports whether v, as [encoding/json] decodes it into an any, is surely
// valid.
func (p *quickSchema) fits(v any) bool {
	if p.kind == "" {
		return true
	}
	switch v := v.(type) {
	case string:
		return p.kind == "string" && (p.enum == nil || slices.Contains(p.enum, v))
	case float64:
		return (p.kind == "number" || p.kind == "integer" && v == math.Trunc(v)) && v >= p.min && v <= p.max
	case bool:
		return p.kind == "boolean"
	case []any:
		if p.kind != "array" {
			return false
		}
		for _, one := range v {
			if p.items != nil && !p.items.fits(one) {
				return false
			}
		}
		return true
	case map[string]any:
		return p.kind == "object" && p.object(v)
	}
	return false
}

func (p *quickSchema) object(v map[string]any) bool {
	for _, name := range p.required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	for name, one := range v {
		known, ok := p.props[name]
		if !ok && p.closed || ok && !known.fits(one) {
			return false
		}
	}
	return true
}

// nothing is the schema that nothing fits.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }
