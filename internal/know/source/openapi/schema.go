package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/internal/jsonappend"
	"ken/internal/yamldoc"
)

const (
	maxSchemaLevel = 40      // nesting of an input schema
	maxSchemaSteps = 100_000 // keywords looked at for one input schema
	maxExample     = 256     // bytes of an example worth its tokens
)

// schema writes the input schema of an operation. References are written out,
// eight levels deep, or fewer where it would become too large.
func (d *apiDoc) schema(call apiCall, in *apiInput) json.RawMessage {
	for _, refs := range []int{8, 4, 2, 1, 0} {
		if refs > 0 && d.work > maxAPIWork {
			continue // an API made to be slow gets the least
		}
		w := &schemaWriter{d: d, refs: refs}
		w.input(in, call.method, refs < 8)
		if d.work += len(w.out) + 16*w.steps; w.over {
			continue
		}
		if refs < 8 {
			d.tally.Warn("schema-cut", call.line, fmt.Sprintf("the input schema of %s is too large; types more than %d references deep are cut in it, and say so", call, refs), "")
		}
		return w.out
	}
	d.tally.Warn("schema-cut", call.line, fmt.Sprintf("the input schema of %s is larger than %d bytes and is left out", call, MaxSchemaBytes), "make it smaller")
	return json.RawMessage(`{"type":"object","description":"The input schema is too large to show; see the description of the API."}`)
}

// apiArguments are those that every operation has besides its own: the executor
// takes them out of a call before it makes the request.
var apiArguments = []struct{ name, method, schema string }{
	{"select", "", `{"type":"array","items":{"type":"string"},"description":"Keep these parts of the answer, as [\"/items/name\"]"}`},
	{"pages", "get", `{"type":"integer","minimum":1,"description":"Read so many pages"}`},
}

// free returns the name of an argument of apiArguments: another one where the
// operation has it itself.
func (in *apiInput) free(name string) string {
	if in.has(name) {
		return "ken_" + name
	}
	return name
}

// A schemaWriter writes JSON Schema 2020-12 of what OpenAPI 3.0 and 3.1 have.
// It drops what says nothing about input: extensions, XML, documentation
// links, read-only properties.
type schemaWriter struct {
	d     *apiDoc
	refs  int // how many references deep
	out   []byte
	open  []string // references that are being written
	steps int
	over  bool // too large; what was written is of no use
}

// more reports whether there is room to go on.
func (w *schemaWriter) more() bool {
	if w.steps++; w.steps > maxSchemaSteps || len(w.out) > MaxSchemaBytes {
		w.over = true
	}
	return !w.over
}

func (w *schemaWriter) raw(s string)  { w.out = append(w.out, s...) }
func (w *schemaWriter) text(s string) { w.out = jsonappend.String(w.out, s) }

// key begins a member of an object.
func (w *schemaWriter) key(name string) {
	if last := w.out[len(w.out)-1]; last != '{' {
		w.raw(",")
	}
	w.text(name)
	w.raw(":")
}

// input writes the whole input.
func (w *schemaWriter) input(in *apiInput, method string, cut bool) {
	w.raw(`{"type":"object"`)
	about := in.description
	if cut {
		about = strings.TrimSpace(about + " (Some nested types are cut; each says so.)")
	}
	if about != "" {
		w.key("description")
		w.text(about)
	}
	w.raw(`,"properties":{`)
	for _, f := range in.fields {
		w.key(f.name)
		w.schema(f.schema, f.description, 1)
	}
	for _, own := range apiArguments {
		if own.method == "" || own.method == method {
			w.key(in.free(own.name))
			w.raw(own.schema)
		}
	}
	w.raw("}")
	required := slices.DeleteFunc(slices.Clone(in.fields), func(f apiField) bool { return !f.required })
	for i, f := range required {
		if i == 0 {
			w.raw(`,"required":[`)
		} else {
			w.raw(",")
		}
		w.text(f.name)
	}
	if len(required) > 0 {
		w.raw("]")
	}
	w.raw("}")
	w.more()
}

// schema writes one schema. A description given here counts before its own.
func (w *schemaWriter) schema(v yamldoc.Value, description string, level int) {
	if !w.more() {
		return
	}
	if always, ok := v.Any.(bool); ok && description == "" {
		w.raw(fmt.Sprint(always))
		return
	}
	m := mapOf(v)
	if m == nil || level > maxSchemaLevel {
		w.stub(m, description)
		return
	}
	before := len(w.open)
	fields, why := w.follow(m)
	if why != "" {
		w.stub(&yamldoc.Map{Fields: fields}, strings.TrimSpace(description+" ("+why+")"))
	} else {
		w.object(fields, description, level)
	}
	w.open = w.open[:before]
}

// stub stands for a schema that is not written out: its type, and why.
func (w *schemaWriter) stub(m *yamldoc.Map, description string) {
	w.raw("{")
	if m != nil {
		kind, _ := m.Get("type")
		properties, _ := m.Get("properties")
		if word, ok := kind.Any.(string); ok {
			w.key("type")
			w.text(word)
		} else if properties.Any != nil {
			w.raw(`"type":"object"`)
		}
	}
	if description != "" {
		w.key("description")
		w.text(description)
	}
	w.raw("}")
}

// follow returns the keywords of a schema, references resolved: what stands
// beside a reference counts before what it names. Where that cannot be written
// out, why says so.
func (w *schemaWriter) follow(m *yamldoc.Map) (fields []yamldoc.Field, why string) {
	for range maxRefChain {
		ref, ok := w.d.get(m, "$ref").Any.(string)
		fields = w.beside(fields, m)
		if !ok {
			return fields, ""
		}
		target, err := w.d.resolve(ref)
		if err != nil {
			w.d.badRef(ref, m.Line, err)
			return fields, "not read: " + err.Error()
		}
		if always, ok := target.Any.(bool); ok && always {
			return fields, ""
		}
		next := mapOf(target)
		switch {
		case next == nil:
			return fields, refName(ref) + " is not a schema"
		case slices.Contains(w.open, ref):
			return append(fields, next.Fields...), refName(ref) + " again, as above"
		case len(w.open) >= w.refs:
			return append(fields, next.Fields...), refName(ref) + ", cut here"
		}
		w.open = append(w.open, ref)
		m = next
	}
	return fields, "its references go in a circle"
}

// beside adds the keywords of a schema to those that count before them.
func (w *schemaWriter) beside(fields []yamldoc.Field, m *yamldoc.Map) []yamldoc.Field {
	w.steps += len(m.Fields)
	have := make(map[string]bool, len(fields)+1)
	have["$ref"] = true
	for _, f := range fields {
		have[f.Key] = true
	}
	for _, f := range m.Fields {
		if !have[f.Key] {
			fields = append(fields, f)
		}
	}
	return fields
}

// badRef reports a reference once.
func (d *apiDoc) badRef(ref string, line int, err error) {
	if d.reported[ref] {
		return
	}
	d.reported[ref] = true
	code, fix := "missing-ref", "define it or correct the reference"
	if !strings.HasPrefix(ref, "#") {
		code, fix = "external-ref", "bundle the API into one file"
	}
	d.tally.Warn(code, line, "$ref "+err.Error(), fix)
}

// object writes the keywords of a schema.
func (w *schemaWriter) object(fields []yamldoc.Field, description string, level int) {
	m := &yamldoc.Map{Fields: fields}
	value := func(key string) any { v, _ := m.Get(key); return v.Any }
	nullable := value("nullable") == true
	w.raw("{")
	if description != "" {
		w.key("description")
		w.text(description)
	}
	for _, f := range fields {
		if !w.more() {
			return
		}
		switch key := f.Key; key {
		case "description":
			if s := textOf(f.Value); s != "" && description == "" {
				w.key(key)
				w.text(s)
			}
		case "type":
			w.types(f.Value, nullable)
		case "enum":
			w.enum(f.Value, nullable)
		case "minimum", "maximum":
			// In 3.0 the bound is exclusive when the other keyword says so.
			name := "exclusive" + strings.ToUpper(key[:1]) + key[1:]
			if value(name) != true {
				name = key
			}
			w.key(name)
			w.value(f.Value)
		case "exclusiveMinimum", "exclusiveMaximum":
			if _, old := f.Value.Any.(bool); !old {
				w.key(key)
				w.value(f.Value)
			}
		case "required":
			w.required(f.Value, mapOf(yamldoc.Value{Any: value("properties")}))
		case "example":
			if raw := f.Value.JSON(); len(raw) <= maxExample && value("examples") == nil {
				w.key("examples")
				w.raw("[" + string(raw) + "]")
			}
		default:
			w.keyword(f, level)
		}
	}
	w.raw("}")
}

// keyword writes a keyword that is the same in OpenAPI and JSON Schema.
func (w *schemaWriter) keyword(f yamldoc.Field, level int) {
	switch f.Key {
	case "properties", "patternProperties", "dependentSchemas":
		w.schemas(f, level)
	case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
		"allOf", "anyOf", "oneOf", "prefixItems":
		w.key(f.Key)
		list, ok := f.Value.Any.([]yamldoc.Value)
		if !ok {
			w.schema(f.Value, "", level+1)
			return
		}
		w.raw("[")
		for i, item := range list {
			if !w.more() {
				return
			}
			if i > 0 {
				w.raw(",")
			}
			w.schema(item, "", level+1)
		}
		w.raw("]")
	case "nullable", "readOnly", "writeOnly", "xml", "externalDocs", "discriminator", "$defs", "definitions",
		"$id", "$schema", "$anchor", "$dynamicAnchor", "$dynamicRef", "$comment", "$ref":
	case "examples":
		if len(f.Value.JSON()) <= maxExample {
			w.key(f.Key)
			w.value(f.Value)
		}
	default:
		if !strings.HasPrefix(f.Key, "x-") {
			w.key(f.Key)
			w.value(f.Value)
		}
	}
}

func (w *schemaWriter) value(v yamldoc.Value) { w.out = append(w.out, v.JSON()...) }

// schemas writes a map of schemas, without the properties that only come back.
func (w *schemaWriter) schemas(f yamldoc.Field, level int) {
	m := mapOf(f.Value)
	if m == nil {
		return
	}
	w.key(f.Key)
	w.raw("{")
	for _, p := range m.Fields {
		if !w.more() {
			return
		}
		if f.Key == "properties" && w.d.isReadOnly(p.Value) {
			continue
		}
		w.key(p.Key)
		w.schema(p.Value, "", level+1)
	}
	w.raw("}")
}

// types writes a type; 3.0 says nullable where JSON Schema lists null.
func (w *schemaWriter) types(v yamldoc.Value, nullable bool) {
	kind, ok := v.Any.(string)
	w.key("type")
	if !ok || !nullable {
		w.value(v)
		return
	}
	w.raw("[")
	w.text(kind)
	w.raw(`,"null"]`)
}

func (w *schemaWriter) enum(v yamldoc.Value, nullable bool) {
	list, ok := v.Any.([]yamldoc.Value)
	if !ok {
		return
	}
	if nullable && !slices.ContainsFunc(list, func(item yamldoc.Value) bool { return item.Any == nil }) {
		list = append(slices.Clone(list), yamldoc.Value{})
	}
	w.key("enum")
	w.value(yamldoc.Value{Any: list})
}

// required writes the names that must be sent.
func (w *schemaWriter) required(v yamldoc.Value, properties *yamldoc.Map) {
	names := slices.DeleteFunc(textsOfList(v), func(name string) bool { return w.d.isReadOnly(w.d.get(properties, name)) })
	if len(names) == 0 {
		return
	}
	raw, _ := json.Marshal(names) // texts cannot fail
	w.key("required")
	w.raw(string(raw))
}
