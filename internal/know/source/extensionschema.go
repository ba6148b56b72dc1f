package source

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/internal/yamldoc"
)

// Schemas of actions. Beside what JSON Schema knows, a property says where its
// value goes on the command line: "x-ken-position" is the place among the
// arguments, from 1, and "x-ken-flag" the flag that stands before it.

// A packageArgument is one input of an action as its package describes it.
type packageArgument struct {
	name, kind, description string
	required                bool
	flag                    string // "--limit"; empty for a positional argument
	choices                 []string
	standard                json.RawMessage
}

// commandSchema makes the input schema of an action: its own, or one from its
// arguments and flags, or from its template, or, where it says nothing, a list
// of arguments.
func (x *extension) commandSchema(name string, s *packageSpec, t commandTemplate) json.RawMessage {
	var args []packageArgument
	said := false
	if s.fields != nil {
		if f, ok := s.fields.Field("inputSchema", "schema"); ok {
			if _, isMap := f.Value.Any.(*yamldoc.Map); isMap {
				return f.Value.JSON()
			}
			x.warn("bad-value", s.path, f.Line, fmt.Sprintf("the input schema of %s is not an object", name), "write a JSON Schema with type and properties")
		}
		var positional, flags bool
		args, positional = x.arguments(s, false, "args", "arguments", "params", "parameters")
		var more []packageArgument
		more, flags = x.arguments(s, true, "flags", "options")
		args, said = append(args, more...), positional || flags
	}
	switch {
	case t.argv != nil:
		return argumentSchema(x.templateArguments(t, args, s), false)
	case said:
		return argumentSchema(x.distinctArguments(args, s), true)
	}
	return json.RawMessage(`{"type":"object","properties":{"args":{"type":"array","items":{"type":"string"},` +
		`"description":"Arguments, one item each"}},"additionalProperties":false}`)
}

// arguments reads a list of arguments: objects, names, or a map by name.
func (x *extension) arguments(s *packageSpec, flags bool, keys ...string) (args []packageArgument, said bool) {
	for _, key := range keys {
		f, ok := s.fields.Field(key)
		if !ok {
			continue
		}
		said = true
		entries, isList := entriesOf(f.Value)
		if !isList {
			x.warn("bad-value", s.path, f.Line, fmt.Sprintf("%s is not a list", f.Key), "write one argument per entry, each with a name")
			continue
		}
		for _, e := range entries {
			if a, ok := x.argument(s, e, flags); ok {
				args = append(args, a)
			}
		}
	}
	return args, said
}

func (x *extension) argument(s *packageSpec, e listEntry, flag bool) (packageArgument, bool) {
	a := packageArgument{name: e.key}
	switch v := e.value.Any.(type) {
	case nil:
	case string:
		if e.key == "" {
			a.name = v
		} else {
			a.description = v
		}
	case *yamldoc.Map:
		r := yamldoc.NewReader(v)
		if name := r.String("name"); name != "" {
			a.name = name
		}
		a.kind, a.description = r.String("type"), r.String("description")
		a.required, _ = r.Bool("required")
		a.choices = append(r.Strings("choices"), r.Strings("enum")...)
		if f, ok := r.Field("default"); ok {
			a.standard = f.Value.JSON()
		}
		x.warnIssues("bad-value", s.path, 1, r)
		for _, f := range r.Rest() {
			x.warn("unknown-key", s.path, f.Line, fmt.Sprintf("an argument has no key %s", f.Key), "an argument has name, type, required, description, choices and default")
		}
	default:
		x.warn("bad-value", s.path, e.line, "this argument has no name", "write it with name: and description:")
		return a, false
	}
	if flag {
		a.flag = a.name
		a.name = strings.TrimLeft(a.name, "-")
		if a.flag == a.name {
			a.flag = "--" + a.name
		}
	}
	if !actionName().MatchString(a.name) {
		x.warn("bad-value", s.path, e.line, fmt.Sprintf("%q cannot name an argument; it is left out", a.name), "use letters, digits, _ and -")
		return a, false
	}
	a.kind = x.argumentType(s, a, e.line)
	return a, true
}

// argumentType gives the word of JSON Schema for a type. A flag without one
// may be given alone or with a value.
func (x *extension) argumentType(s *packageSpec, a packageArgument, line int) string {
	switch word := strings.ToLower(a.kind); word {
	case "":
		if a.flag == "" {
			return "string"
		}
		return ""
	case "string", "integer", "number", "boolean", "array", "object":
		return word
	case "str", "text", "path", "file", "url", "uri":
		return "string"
	case "int":
		return "integer"
	case "float", "double":
		return "number"
	case "bool", "flag", "switch":
		return "boolean"
	case "list":
		return "array"
	}
	x.warn("bad-value", s.path, line, fmt.Sprintf("argument %s has the type %q, which is read as string", a.name, a.kind), "the types are string, integer, number, boolean and array")
	return "string"
}

// distinctArguments keeps the first of each name.
func (x *extension) distinctArguments(args []packageArgument, s *packageSpec) []packageArgument {
	var out []packageArgument
	for _, a := range args {
		if slices.ContainsFunc(out, func(b packageArgument) bool { return a.name == b.name }) {
			x.warn("repeated-argument", s.path, s.line, fmt.Sprintf("the argument %s is there twice; the first is used", a.name), "name it once")
			continue
		}
		out = append(out, a)
	}
	return out
}

// templateArguments gives the parameters of a template, with what the action
// says about them. A described packageArgument without a place is left out, since no
// value of it could go anywhere.
func (x *extension) templateArguments(t commandTemplate, described []packageArgument, s *packageSpec) []packageArgument {
	var out []packageArgument
	for _, p := range t.parameters {
		a := packageArgument{name: p.name, kind: "string", required: true}
		if i := slices.IndexFunc(described, func(d packageArgument) bool { return d.name == p.name }); i >= 0 {
			a.kind, a.description, a.choices = described[i].kind, described[i].description, described[i].choices
		}
		if p.list {
			a.kind, a.required = "array", false
		} else if a.kind == "array" || a.kind == "object" || a.kind == "" {
			a.kind = "string" // one element holds one value
		}
		out = append(out, a)
	}
	for _, d := range described {
		if !slices.ContainsFunc(out, func(a packageArgument) bool { return a.name == d.name }) {
			x.warn("unused-argument", s.path, s.line, fmt.Sprintf("the template has no place for the argument %s", d.name), fmt.Sprintf("write {%s} where it belongs", d.name))
		}
	}
	return out
}

// argumentSchema writes arguments as a JSON Schema, in their order.
func argumentSchema(args []packageArgument, placed bool) json.RawMessage {
	var b strings.Builder
	text := func(s string) string {
		raw, _ := json.Marshal(s) // a string cannot fail
		return string(raw)
	}
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	position := 0
	for i, a := range args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text(a.name) + `:{"type":`)
		switch a.kind {
		case "":
			b.WriteString(`["boolean","string"]`)
		case "array":
			b.WriteString(`"array","items":{"type":"string"}`)
		default:
			b.WriteString(text(a.kind))
		}
		if a.description != "" {
			b.WriteString(`,"description":` + text(a.description))
		}
		if len(a.choices) > 0 {
			raw, _ := json.Marshal(a.choices) // strings cannot fail
			b.WriteString(`,"enum":` + string(raw))
		}
		if len(a.standard) > 0 {
			b.WriteString(`,"default":` + string(a.standard))
		}
		if a.flag != "" {
			b.WriteString(`,"x-ken-flag":` + text(a.flag))
		} else if placed {
			position++
			fmt.Fprintf(&b, `,"x-ken-position":%d`, position)
		}
		b.WriteByte('}')
		if a.required {
			required = append(required, a.name)
		}
	}
	b.WriteByte('}')
	if len(required) > 0 {
		raw, _ := json.Marshal(required) // strings cannot fail
		b.WriteString(`,"required":` + string(raw))
	}
	b.WriteString(`,"additionalProperties":false}`)
	return json.RawMessage(b.String())
}
