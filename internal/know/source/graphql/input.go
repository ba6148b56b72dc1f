package graphql

import (
	"encoding/json"
	"slices"
	"strings"

	"ken/internal/jsonappend"
)

const (
	maxSchemaBytes = 64 << 10  // of one input schema
	maxWork        = 128 << 20 // bytes of all schemas that were tried
	maxEnum        = 200       // values that are listed
	maxAbout       = 300       // characters of a description of an argument
)

// inputSchema returns the JSON schema of an operation's arguments. Input objects
// are written out, six levels deep, or fewer where it would become too large. cut
// says that it was. With nulls, what may be null may be given as null: a mutation may
// tell null from what is left out.
func (d *document) inputSchema(f *fieldDef, own []ownArgument, nulls bool) (out json.RawMessage, cut bool) {
	for _, levels := range []int{6, 3, 2, 1, 0} {
		if levels > 0 && d.work > maxWork {
			continue // an API made to be slow gets the least
		}
		w := &schemaWriter{d: d, levels: levels, nulls: nulls}
		w.object(f.Args, own)
		if d.work += len(w.out); len(w.out) <= maxSchemaBytes {
			return w.out, levels < 6
		}
	}
	return json.RawMessage(`{"type":"object","description":"The input schema is too large to show; see the documentation of the API."}`), true
}

// An ownArgument is one that Ken takes out of a call.
type ownArgument struct{ name, schema string }

type schemaWriter struct {
	d      *document
	levels int
	nulls  bool
	open   []string // input objects that are being written
	out    []byte
}

func (w *schemaWriter) raw(s string)  { w.out = append(w.out, s...) }
func (w *schemaWriter) text(s string) { w.out = jsonappend.String(w.out, s) }

func (w *schemaWriter) key(name string) {
	if last := w.out[len(w.out)-1]; last != '{' {
		w.raw(",")
	}
	w.text(name)
	w.raw(":")
}

// members writes the keywords of an object.
func (w *schemaWriter) members(list []*inputDef, own []ownArgument) {
	w.raw(`"type":"object","properties":{`)
	for _, i := range list {
		if len(w.out) > maxSchemaBytes {
			return
		}
		w.key(i.Name)
		w.value(i)
	}
	for _, o := range own {
		w.key(o.name)
		w.raw(o.schema)
	}
	w.raw("}")
	var required []string
	for _, i := range list {
		if i.required() {
			required = append(required, i.Name)
		}
	}
	if len(required) > 0 {
		raw, _ := json.Marshal(required) // texts cannot fail
		w.raw(`,"required":` + string(raw))
	}
}

func (w *schemaWriter) object(list []*inputDef, own []ownArgument) {
	w.raw("{")
	w.members(list, own)
	w.raw("}")
}

// value writes one argument or member.
func (w *schemaWriter) value(i *inputDef) {
	about := clip(i.Description, maxAbout)
	if i.DefaultValue != nil && len(*i.DefaultValue) <= 60 {
		about = strings.TrimSpace(about + " (default " + clip(*i.DefaultValue, 60) + ")")
	}
	w.raw("{")
	w.typed(i.Type, about)
	w.raw("}")
}

// typed writes the keywords of a type.
func (w *schemaWriter) typed(r *typeRef, about string) {
	nullable := r.Kind != nonNull && w.nulls
	if r.Kind == nonNull {
		r = r.OfType
	}
	if r.Kind == list {
		w.kind("array", nullable)
		w.about(about)
		w.key("items")
		w.raw("{")
		w.typed(r.OfType, "")
		w.raw("}")
		return
	}
	t := w.d.types[r.Name]
	switch kind := scalar(r.Name); {
	case t != nil && t.Kind == "ENUM":
		w.enum(t, nullable)
	case t != nil && t.Kind == "INPUT_OBJECT":
		w.input(t, nullable, about)
		return
	case kind != "":
		w.kind(kind, nullable)
	default: // a scalar of the API: its form is unknown
		about = strings.TrimSpace(about + " (" + r.Name + ")")
	}
	w.about(about)
}

// scalar returns the type of JSON that a scalar of GraphQL has, or "" for one of
// the API's own.
func scalar(name string) string {
	switch name {
	case "Int":
		return "integer"
	case "Float":
		return "number"
	case "String", "ID":
		return "string"
	case "Boolean":
		return "boolean"
	}
	return ""
}

func (w *schemaWriter) kind(kind string, nullable bool) {
	w.key("type")
	if nullable {
		w.raw(`["` + kind + `","null"]`)
		return
	}
	w.text(kind)
}

func (w *schemaWriter) about(text string) {
	if text != "" {
		w.key("description")
		w.text(text)
	}
}

func (w *schemaWriter) enum(t *typeDef, nullable bool) {
	if len(t.EnumValues) > maxEnum || len(t.EnumValues) == 0 {
		w.kind("string", nullable)
		return
	}
	w.key("enum")
	w.raw("[")
	for i, v := range t.EnumValues {
		if i > 0 {
			w.raw(",")
		}
		w.text(v.Name)
	}
	if nullable {
		w.raw(",null")
	}
	w.raw("]")
}

// input writes an input object, or says that it is not written out here.
func (w *schemaWriter) input(t *typeDef, nullable bool, about string) {
	why := ""
	switch {
	case slices.Contains(w.open, t.Name):
		why = "again, as above"
	case len(w.open) >= w.levels:
		why = "cut here"
	}
	if why != "" {
		w.kind("object", nullable)
		w.about(strings.TrimSpace(about + " (" + t.Name + ", " + why + ")"))
		return
	}
	if about == "" {
		about = clip(t.Description, maxAbout)
	}
	w.about(about)
	if last := w.out[len(w.out)-1]; last != '{' {
		w.raw(",")
	}
	w.open = append(w.open, t.Name)
	at := len(w.out)
	w.members(t.InputFields, nil)
	w.open = w.open[:len(w.open)-1]
	if nullable {
		rest := string(w.out[at+len(`"type":"object"`):])
		w.out = append(append(w.out[:at], `"type":["object","null"]`...), rest...)
	}
}
