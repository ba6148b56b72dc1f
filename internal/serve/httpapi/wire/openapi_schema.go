package wire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A Schemer is a type that writes its JSON itself and says what that is. Its
// method is called on the zero value.
type Schemer interface {
	JSONSchema() map[string]any
}

// schemas makes JSON Schema of Go types as encoding/json writes them. A struct
// with a name is made once, and referred to.
type schemas struct {
	made  map[string]any
	names map[schemaKey]string
}

type schemaKey struct {
	t    reflect.Type
	body bool
}

func newSchemas() *schemas { return &schemas{map[string]any{}, map[schemaKey]string{}} }

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// of returns the schema of a type. In a body nothing must be there, and nothing
// may be that is not known; in an answer whatever is always written is
// required.
func (s *schemas) of(t reflect.Type, body bool) object {
	if t == nil {
		return object{}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if own, ok := s.special(t); ok {
		return own
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": s.of(t.Elem(), body)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem(), body)}
	case reflect.Struct:
		return s.named(t, body)
	}
	return object{} // an interface: anything
}

// special returns the schema of a type that does not look as its kind.
func (s *schemas) special(t reflect.Type) (object, bool) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}, true
	case reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}, true
	case reflect.TypeFor[json.RawMessage]():
		return object{}, true
	case reflect.TypeFor[json.Number]():
		return object{"type": "number"}, true
	}
	if t.Kind() == reflect.Interface {
		return nil, false
	}
	if own, ok := reflect.New(t).Interface().(Schemer); ok {
		return own.JSONSchema(), true
	}
	either := func(i reflect.Type) bool { return t.Implements(i) || reflect.PointerTo(t).Implements(i) }
	switch {
	case either(reflect.TypeFor[json.Marshaler]()), either(reflect.TypeFor[json.Unmarshaler]()):
		return object{}, true
	case either(reflect.TypeFor[encoding.TextMarshaler]()), either(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return object{"type": "string"}, true
	}
	return nil, false
}

// named returns a reference to a struct that has a name, and the struct itself
// where it has none.
func (s *schemas) named(t reflect.Type, body bool) object {
	if t.Name() == "" {
		return s.structure(t, body)
	}
	key := schemaKey{t, body}
	if name, ok := s.names[key]; ok {
		return ref(name)
	}
	name := s.free(t, body)
	s.names[key] = name
	s.made[name] = nil // it may hold itself
	s.made[name] = s.structure(t, body)
	return ref(name)
}

// free returns a name that no other type has: package and type, with more of the
// package's path where that is taken.
func (s *schemas) free(t reflect.Type, body bool) string {
	parts := strings.Split(t.PkgPath(), "/")
	for n := 1; ; n++ {
		name := strings.Join(parts[max(0, len(parts)-n):], ".") + "." + t.Name()
		if body {
			name += "Body"
		}
		name = strings.Map(func(c rune) rune {
			if c == '.' || c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
				return c
			}
			return '_'
		}, name)
		if n > len(parts) {
			name += strings.Repeat("_", n-len(parts))
		}
		if _, taken := s.made[name]; !taken {
			return name
		}
	}
}

func (s *schemas) structure(t reflect.Type, body bool) object {
	properties, required := object{}, []string{}
	for _, f := range fieldsOf(t) {
		schema := s.of(f.t, body)
		if f.quoted {
			schema = object{"type": "string"}
		}
		if f.t.Kind() == reflect.Pointer && !f.optional {
			schema = object{"anyOf": []object{schema, {"type": "null"}}}
		}
		properties[f.name] = schema
		if !f.optional && !body {
			required = append(required, f.name)
		}
	}
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		out["required"] = required
	}
	if body {
		out["additionalProperties"] = false
	}
	return out
}

type field struct {
	name     string
	t        reflect.Type
	optional bool
	quoted   bool
	depth    int
}

// fieldsOf returns the fields of a struct as encoding/json sees them: those of
// embedded structs too, the outer one where two have a name.
func fieldsOf(t reflect.Type) []field {
	best := map[string]int{}
	var out []field
	for _, f := range collect(t, 0, nil) {
		i, there := best[f.name]
		switch {
		case !there:
			best[f.name] = len(out)
			out = append(out, f)
		case f.depth < out[i].depth:
			out[i] = f
		}
	}
	return out
}

func collect(t reflect.Type, depth int, outer []reflect.Type) (out []field) {
	if slices.Contains(outer, t) {
		return nil // it embeds itself
	}
	outer = append(slices.Clip(outer), t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if inner := deref(f.Type); f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			for _, g := range collect(inner, depth+1, outer) {
				g.optional = g.optional || f.Type.Kind() == reflect.Pointer
				out = append(out, g)
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
		out = append(out, field{name: name, t: f.Type, optional: has("omitempty") || has("omitzero"), quoted: has("string"), depth: depth})
	}
	return out
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
