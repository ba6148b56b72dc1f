package extension

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/pattern"
	"ken/internal/yamldoc"
)

// A packageArgument is one input of an action as its package describes it.
type packageArgument struct {
	name, kind, description string
	required                capability.Hint
	flag                    string // "--limit"; empty for a positional argument
	choices                 []string
	standard                json.RawMessage

	// Keywords of JSON Schema, each behind a comma: of a value, or of each
	// value of a list, and of the list.
	bounds, lengths string
}

// arguments reads a list of arguments: objects, names, or a map by name.
func (x *extension) arguments(s *packageSpec, flags bool, keys ...string) (args []packageArgument, said bool) {
	for _, key := range keys {
		f, ok := s.fields.Field(key)
		if !ok {
			continue
		}
		said = true
		entries, isList := format.EntriesOf(f.Value)
		if !isList {
			x.Warn("bad-value", s.path, f.Line, fmt.Sprintf("%s is not a list", f.Key), "write one argument per entry, each with a name")
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

func (x *extension) argument(s *packageSpec, e format.Entry, flag bool) (packageArgument, bool) {
	a := packageArgument{name: e.Key}
	switch v := e.Value.Any.(type) {
	case nil:
	case string:
		if e.Key == "" {
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
		if b, said := r.Bool("required"); said {
			a.required = capability.HintOf(b)
		}
		a.flag = strings.TrimSpace(r.String("flag"))
		a.choices = append(r.Strings("choices"), r.Strings("enum")...)
		if f, ok := r.Field("default"); ok {
			a.standard = f.Value.JSON()
		}
		x.readBounds(s, &a, r)
		x.WarnIssues("bad-value", s.path, 1, r)
		for _, f := range r.Rest() {
			x.Warn("unknown-key", s.path, f.Line, fmt.Sprintf("an argument has no key %s", f.Key), "an argument has name, type, required, description, choices, default, flag, pattern, minimum, maximum, and lengths as minLength and maxItems")
		}
	default:
		x.Warn("bad-value", s.path, e.Line, "this argument has no name", "write it with name: and description:")
		return a, false
	}
	if flag {
		written := a.name
		a.name = strings.TrimLeft(a.name, "-")
		switch {
		case a.flag != "":
		case written == a.name:
			a.flag = "--" + a.name
		default:
			a.flag = written
		}
	}
	if a.flag != "" && !flagForm().MatchString(a.flag) {
		x.Warn("bad-value", s.path, e.Line, fmt.Sprintf("%q cannot be a flag; %s is left out", a.flag, a.name), "begin it with a dash and use letters, digits, dashes, dots and underscores, as in --limit")
		return a, false
	}
	if !actionName().MatchString(a.name) {
		x.Warn("bad-value", s.path, e.Line, fmt.Sprintf("%q cannot name an argument; it is left out", a.name), "use letters, digits, _ and -")
		return a, false
	}
	a.kind = x.argumentType(s, a, e.Line)
	return a, true
}

// flagForm is one word that begins with a dash.
var flagForm = pattern.Lazy(`^--?[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// readBounds takes the keywords of JSON Schema that narrow what a value may be.
// One that cannot be read costs the action: without it, it would take more than
// its author meant.
func (x *extension) readBounds(s *packageSpec, a *packageArgument, r *yamldoc.Reader) {
	bad := func(f yamldoc.Field, what, fix string) {
		x.Fault("bad-bound", s.path, f.Line, fmt.Sprintf("%s of the argument %s is not %s", f.Key, a.name, what), fix)
		s.bad = true
	}
	if f, ok := r.Field("pattern"); ok {
		text, _ := f.Value.Any.(string)
		if _, err := regexp.Compile(text); err != nil || text == "" {
			bad(f, "a regular expression", "write one that RE2 knows, as in '^[a-z]+$'")
		}
		raw, _ := json.Marshal(text) // a string cannot fail
		a.bounds += `,"pattern":` + string(raw)
	}
	for _, key := range []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"} {
		f, ok := r.Field(key)
		if !ok {
			continue
		}
		n, whole := f.Value.Any.(int64)
		_, number := f.Value.Any.(float64)
		switch length := key != "minimum" && key != "maximum"; {
		case length && (!whole || n < 0):
			bad(f, "a length", "write a whole number")
		case !whole && !number:
			bad(f, "a number", "write a number")
		case strings.HasSuffix(key, "Items"):
			a.lengths += `,"` + key + `":` + string(f.Value.JSON())
		default:
			a.bounds += `,"` + key + `":` + string(f.Value.JSON())
		}
	}
}

// argumentType returns the word of JSON Schema for a type. A flag without one
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
	x.Warn("bad-value", s.path, line, fmt.Sprintf("argument %s has the type %q, which is read as string", a.name, a.kind), "the types are string, integer, number, boolean and array")
	return "string"
}

// distinctArguments keeps the first of each name.
func (x *extension) distinctArguments(args []packageArgument, s *packageSpec) []packageArgument {
	var out []packageArgument
	for _, a := range args {
		if slices.ContainsFunc(out, func(b packageArgument) bool { return a.name == b.name }) {
			x.Warn("repeated-argument", s.path, s.line, fmt.Sprintf("the argument %s is there twice; the first is used", a.name), "name it once")
			continue
		}
		out = append(out, a)
	}
	return out
}
