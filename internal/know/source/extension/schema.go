package extension

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/yamldoc"
)

// Schemas of actions. Beside what JSON Schema knows, a property says where its
// value goes: "x-ken-position" is the place among the arguments, from 1, and
// "x-ken-flag" the flag that stands before it, or that a switch is. Where a
// command line has places of its own, they say how a person types the value.

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
			x.Warn("bad-value", s.path, f.Line, fmt.Sprintf("the input schema of %s is not an object", name), "write a JSON Schema with type and properties")
		}
		var positional, flags bool
		args, positional = x.arguments(s, false, "args", "arguments", "params", "parameters")
		var more []packageArgument
		more, flags = x.arguments(s, true, "flags", "options")
		args, said = append(args, more...), positional || flags
	}
	switch {
	case t.argv != nil:
		args = x.templateArguments(t, args, s, said && s.argv != nil)
		// Places are written only where flags make them necessary.
		return argumentSchema(args, slices.ContainsFunc(args, func(a packageArgument) bool { return a.flag != "" }))
	case said:
		return argumentSchema(x.distinctArguments(args, s), true)
	}
	return json.RawMessage(`{"type":"object","properties":{"args":{"type":"array","items":{"type":"string"},` +
		`"description":"Arguments, one item each"}},"additionalProperties":false}`)
}

// templateArguments returns the parameters of a command line with what the action
// says about them, in the order in which it says it. A described argument
// without a place is left out, since no value of it could go anywhere. Where all
// have to be described, a brace around another name is a slip, which CheckArgv
// finds.
func (x *extension) templateArguments(t commandTemplate, described []packageArgument, s *packageSpec, all bool) []packageArgument {
	var out []packageArgument
	has := func(list []packageArgument, name string) bool {
		return slices.ContainsFunc(list, func(a packageArgument) bool { return a.name == name })
	}
	for _, d := range x.distinctArguments(described, s) {
		i := slices.IndexFunc(t.parameters, func(p templateParameter) bool { return p.name == d.name })
		if i < 0 {
			x.Warn("unused-argument", s.path, s.line, fmt.Sprintf("the template has no place for the argument %s", d.name), fmt.Sprintf("write {%s} where it belongs", d.name))
			continue
		}
		out = append(out, d.placed(t.parameters[i]))
	}
	for _, p := range t.parameters {
		if !all && !has(out, p.name) {
			out = append(out, packageArgument{name: p.name, kind: "string"}.placed(p))
		}
	}
	return out
}

// placed returns an argument as its place in a command line has it: what it does
// not say about being required follows from whether the command works without.
func (a packageArgument) placed(p templateParameter) packageArgument {
	if p.list {
		a.kind = "array"
	} else if a.kind == "array" || a.kind == "object" || a.kind == "" {
		a.kind = "string" // one element holds one value
	}
	if a.required == capability.Unsaid {
		isSwitch := a.kind == "boolean" && a.flag != "" && p.alone
		a.required = capability.HintOf(!p.list && !p.option && !isSwitch && len(a.standard) == 0)
	}
	return a
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
		of := func() {
			if len(a.choices) > 0 {
				raw, _ := json.Marshal(a.choices) // strings cannot fail
				b.WriteString(`,"enum":` + string(raw))
			}
			b.WriteString(a.bounds)
		}
		switch a.kind {
		case "":
			b.WriteString(`["boolean","string"]`)
		case "array":
			b.WriteString(`"array","items":{"type":"string"`)
			of()
			b.WriteString(`}` + a.lengths)
		default:
			b.WriteString(text(a.kind))
		}
		if a.description != "" {
			b.WriteString(`,"description":` + text(a.description))
		}
		if a.kind != "array" {
			of()
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
		if a.required == capability.Yes {
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
