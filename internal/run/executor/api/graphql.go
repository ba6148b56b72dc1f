package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ken/capability"
)

// A graph is a query or mutation of a GraphQL API.
type graph struct {
	kind  string            // query or mutation
	field string            // the one field that the request asks for
	types map[string]string // of the arguments
	asked *fields           // what is asked of the answer where the call names nothing; nil for a scalar
}

// readGraph reads what the source wrote about a GraphQL operation.
func (op *operation) readGraph(c *capability.Capability) error {
	g := &graph{kind: c.Meta["operation"], field: c.Meta["field"]}
	if json.Unmarshal([]byte(c.Meta["arguments"]), &g.types) != nil || g.field == "" || g.kind != "query" && g.kind != "mutation" {
		return errors.New("the request description cannot be read")
	}
	if op.origin == "" {
		return errors.New("the API has no address")
	}
	if text := c.Meta["selection"]; text != "" {
		g.asked = readFields(text)
	}
	for name := range g.types {
		op.fields[name] = field{in: "variable", wire: name}
	}
	op.graph = g
	return op.readAuth(c)
}

// fieldsName is the argument that says which fields are asked for: fields, unless
// the operation has a parameter of this name.
func (op *operation) fieldsName() string { return op.free("fields") }

// fillGraph makes the request of the arguments. Arguments are variables: no value
// becomes a part of the query.
func (p *plan) fillGraph(args map[string]any) error {
	g := p.op.graph
	if name := p.op.pagesName(); args[name] != nil {
		return fmt.Errorf("unknown argument %.40q", name) // a query has pages by arguments of its own
	}
	var err error
	if p.choose, p.pages, err = p.own(args); err != nil {
		return err
	}
	asked := g.asked
	if name := p.op.fieldsName(); args[name] != nil && g.asked != nil {
		if asked, err = g.choose(args[name]); err != nil {
			return fmt.Errorf("argument %s: %w", name, err)
		}
		delete(args, name)
	}
	var declared, passed []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		kind, ok := g.types[name]
		if !ok {
			return fmt.Errorf("unknown argument %.40q", name)
		}
		declared = append(declared, "$"+name+": "+kind)
		passed = append(passed, name+": $"+name)
	}
	for _, name := range slices.Sorted(maps.Keys(g.types)) {
		if _, given := args[name]; given && args[name] == nil && strings.HasSuffix(g.types[name], "!") {
			return fmt.Errorf("argument %s must not be null", name)
		}
	}
	text := g.kind + " " + g.field + inParens(declared) + " { " + g.field + inParens(passed)
	if asked != nil {
		text += " " + asked.String()
	}
	text += " }"
	if len(text) > mostQuery {
		return fmt.Errorf("argument %s asks for too many fields", p.op.fieldsName())
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{"query": text, "operationName": g.field, "variables": args}); err != nil {
		return errors.New("the arguments cannot be encoded as JSON")
	}
	p.body = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if p.url, err = url.Parse(p.op.template); err != nil {
		return errors.New("the address is not http or https with a host")
	}
	p.header.Set("Accept", "application/graphql-response+json, application/json;q=0.9")
	p.header.Set("Content-Type", "application/json")
	p.header.Set("User-Agent", "ken")
	return nil
}

const mostQuery = 64 << 10

func inParens(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// fields are what is asked of one object: names in order, with what is asked of
// each, which is nil for a scalar.
type fields struct {
	names []string
	by    map[string]*fields
}

func (f *fields) add(name string, of *fields) {
	if f.by == nil {
		f.by = map[string]*fields{}
	}
	if _, known := f.by[name]; !known {
		f.names = append(f.names, name)
	}
	f.by[name] = of
}

func (f *fields) String() string {
	var b strings.Builder
	b.WriteString("{")
	for _, name := range f.names {
		b.WriteString(" " + name)
		if of := f.by[name]; of != nil {
			b.WriteString(" " + of.String())
		}
	}
	b.WriteString(" }")
	return b.String()
}

// readFields reads a selection that the source wrote.
func readFields(text string) *fields {
	top := &fields{}
	stack := []*fields{top}
	last := ""
	words := strings.Fields(text)
	for i := 1; i < len(words) && len(stack) > 0; i++ {
		in := stack[len(stack)-1]
		switch word := words[i]; word {
		case "{":
			inner := &fields{}
			in.add(last, inner)
			stack = append(stack, inner)
		case "}":
			stack = stack[:len(stack)-1]
		case "...":
			if i+2 < len(words) {
				last = "... on " + words[i+2]
				i += 2
			}
		default:
			last = word
			in.add(word, nil)
		}
	}
	return top
}

// choose reads the fields that a call asks for: paths as in "owner/name". Of an
// object without further names it asks what Ken would ask of it anyway.
func (g *graph) choose(v any) (*fields, error) {
	paths, err := pathsOf(v)
	if err != nil {
		return nil, err
	}
	const most, deepest = 200, 12
	if len(paths) == 0 || len(paths) > most {
		return nil, fmt.Errorf("has %d paths; give 1 to %d", len(paths), most)
	}
	top := &fields{}
	for _, path := range paths {
		at, known := top, g.asked
		parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
		if len(parts) > deepest {
			return nil, fmt.Errorf("path %.60q has more than %d parts", path, deepest)
		}
		for i, part := range parts {
			kind, isKind := strings.CutPrefix(part, "on ")
			if !graphName(kind) {
				return nil, fmt.Errorf("path %.60q is not made of the names of fields, as in owner/name", path)
			}
			if isKind {
				part = "... on " + kind
			}
			if known != nil {
				known = known.by[part]
			}
			if i == len(parts)-1 {
				if at.by[part] == nil {
					at.add(part, known)
				}
				break
			}
			if at.by[part] == nil {
				at.add(part, &fields{})
			}
			at = at.by[part]
		}
	}
	return top, nil
}

func pathsOf(v any) ([]string, error) {
	wrong := errors.New("must be a list of names, as in [\"id\", \"owner/name\"]")
	list, ok := v.([]any)
	if text, isText := v.(string); isText {
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }), nil
	}
	if !ok {
		return nil, wrong
	}
	var out []string
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return nil, wrong
		}
		out = append(out, text)
	}
	return out, nil
}

// graphName reports whether a text is a name of the query language.
func graphName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != "" && len(s) <= 200
}

// A graphAnswer is the answer of a GraphQL server: data, errors or both.
type graphAnswer struct {
	Data   map[string]json.RawMessage `json:"data"`
	Errors []struct {
		Message string `json:"message"`
		Path    []any  `json:"path"`
	} `json:"errors"`
}

// unpack replaces the body of an answer by the value of the field that was asked
// for, and returns what else there is to say. A server says with status 200 that a
// request failed; then failed is true.
func (g *graph) unpack(a *answer) (say []string, failed bool) {
	if a.truncated || a.broken != "" || a.elsewhere != "" || a.status >= 300 && a.status < 400 {
		return nil, false
	}
	var got graphAnswer
	if err := json.Unmarshal(a.body, &got); err != nil || got.Data == nil && len(got.Errors) == 0 {
		if a.status >= 400 {
			return nil, true // the text of the answer says why
		}
		return []string{"The answer is not one of GraphQL: it has neither data nor errors."}, true
	}
	value, ok := got.Data[g.field]
	missing := !ok || string(bytes.TrimSpace(value)) == "null"
	switch n := len(got.Errors); {
	case n > 0 && missing:
		say = append(say, "The server refused the "+g.kind+":")
	case n > 0:
		say = append(say, "The answer is partial: the server left out what these errors name:")
	case !ok:
		return []string{"The answer has no value for " + g.field + "."}, true
	}
	const most = 10
	for i, e := range got.Errors {
		if i == most {
			say = append(say, fmt.Sprintf("and %d more errors", len(got.Errors)-most))
			break
		}
		line := "- " + oneLine(strings.Join(strings.Fields(e.Message), " "))
		if len(e.Path) > 0 {
			line += " (at " + oneLine(pathText(e.Path)) + ")"
		}
		say = append(say, line)
	}
	if failed = missing && len(got.Errors) > 0; failed {
		a.body = nil
	} else {
		a.body = value
	}
	return say, failed
}

func pathText(path []any) string {
	var out []string
	for _, p := range path {
		out = append(out, fmt.Sprint(p))
	}
	return strings.Join(out, "/")
}

// faultless reports whether an answer has no errors in it.
func (g *graph) faultless(a *answer) bool {
	var got struct {
		Errors json.RawMessage `json:"errors"`
	}
	return a.status == http.StatusOK && json.Unmarshal(a.body, &got) == nil && len(got.Errors) == 0
}
