// Package graphqltest is a GraphQL server for tests. It answers introspection, and
// checks every other request against its schema as servers do.
package graphqltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Server answers for one schema. The values of its answers follow from their
// types. Fields of the root types with these names are special: refused and partial
// answer errors with status 200, nonsense answers what is not GraphQL, and echo
// answers the variables as a text.
type Server struct {
	// Token, when not empty, must be sent as a bearer token.
	Token string

	types map[string]*typ

	mu      sync.Mutex
	queries []string
}

type typ struct {
	kind, name string
	fields     []*field
	members    []string // of a union, or values of an enum
}

type field struct {
	name string
	args []*field
	of   string // as it is written, as in [ID!]!
	def  string
}

var (
	opens  = regexp.MustCompile(`^(type|input|interface|enum) (\w+)(?: implements ([\w &]+))? \{$`)
	union  = regexp.MustCompile(`^union (\w+) = (.*)$`)
	member = regexp.MustCompile(`^(\w+)(?:\((.*)\))?: ([\w\[\]!]+)(?: = (.*))?$`)
)

// New makes a server of a schema in a simple form of the schema language: one type
// or field in each line, and no descriptions, directives or comments. The root types
// are Query, Mutation and Subscription.
func New(text string) (*Server, error) {
	s := &Server{types: map[string]*typ{}}
	for _, name := range []string{"Int", "Float", "String", "Boolean", "ID"} {
		s.types[name] = &typ{kind: "SCALAR", name: name}
	}
	var in *typ
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, isScalar := strings.CutPrefix(line, "scalar ")
		switch m := opens.FindStringSubmatch(line); {
		case line == "":
		case line == "}":
			in = nil
		case in != nil && in.kind == "ENUM":
			in.members = append(in.members, line)
		case in != nil:
			f, err := readField(line)
			if err != nil {
				return nil, err
			}
			in.fields = append(in.fields, f)
		case m != nil:
			kind := map[string]string{"type": "OBJECT", "input": "INPUT_OBJECT", "interface": "INTERFACE", "enum": "ENUM"}[m[1]]
			in = &typ{kind: kind, name: m[2]}
			s.types[in.name] = in
		case isScalar:
			s.types[name] = &typ{kind: "SCALAR", name: name}
		default:
			u := union.FindStringSubmatch(line)
			if u == nil {
				return nil, fmt.Errorf("cannot read %q", line)
			}
			s.types[u[1]] = &typ{kind: "UNION", name: u[1], members: strings.Split(u[2], " | ")}
		}
	}
	return s, nil
}

func readField(line string) (*field, error) {
	m := member.FindStringSubmatch(line)
	if m == nil {
		return nil, fmt.Errorf("cannot read field %q", line)
	}
	f := &field{name: m[1], of: m[3], def: m[4]}
	if m[2] == "" {
		return f, nil
	}
	for one := range strings.SplitSeq(m[2], ", ") {
		a, err := readField(one)
		if err != nil {
			return nil, err
		}
		f.args = append(f.args, a)
	}
	return f, nil
}

func base(of string) string { return strings.Trim(of, "[]!") }

// Queries returns the queries that were asked, without introspection.
func (s *Server) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Query     string
		Variables map[string]any
	}
	body, err := io.ReadAll(r.Body)
	switch {
	case s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token:
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	case err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body, &q) != nil:
		http.Error(w, "that is no request of GraphQL", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.Contains(q.Query, "__schema") {
		json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"__schema": s.introspection()}})
		return
	}
	s.mu.Lock()
	s.queries = append(s.queries, q.Query)
	s.mu.Unlock()
	name, value, err := s.answer(q.Query, q.Variables)
	switch {
	case err != nil:
		json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"message": err.Error()}}})
	case name == "refused":
		fmt.Fprint(w, `{"data":{"refused":null},"errors":[{"message":"you may not","path":["refused"]}]}`)
	case name == "partial":
		json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{name: value}, "errors": []any{map[string]any{"message": "one item is lost", "path": []any{"partial", 1}}}})
	case name == "nonsense":
		fmt.Fprint(w, `{"pets": 7}`)
	default:
		w.Header().Set("Cache-Control", "max-age=60")
		json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{name: value}})
	}
}

// answer checks a query and makes an answer to it.
func (s *Server) answer(text string, variables map[string]any) (name string, value any, err error) {
	p := &parser{words: words.FindAllString(text, -1)}
	root := s.types[map[string]string{"query": "Query", "mutation": "Mutation"}[p.take()]]
	if root == nil {
		return "", nil, errors.New("no such operation")
	}
	p.take() // its name
	declared := map[string]string{}
	if p.peek() == "(" {
		for p.take(); p.peek() != ")" && p.peek() != ""; {
			p.want("$")
			v := p.take()
			p.want(":")
			for p.peek() != "$" && p.peek() != ")" && p.peek() != "" {
				declared[v] += p.take()
			}
		}
		p.want(")")
	}
	p.want("{")
	f := root.field(p.take())
	if f == nil {
		return "", nil, errors.New("the root has no such field")
	}
	used := map[string]bool{}
	if p.peek() == "(" {
		for p.take(); p.peek() != ")" && p.peek() != ""; {
			a := p.take()
			p.want(":")
			p.want("$")
			v := p.take()
			i := slices.IndexFunc(f.args, func(one *field) bool { return one.name == a })
			if i < 0 || declared[v] != f.args[i].of {
				return "", nil, fmt.Errorf("argument %s has the type %q", a, declared[v])
			}
			used[v] = true
		}
		p.want(")")
	}
	for _, a := range f.args {
		if _, given := variables[a.name]; strings.HasSuffix(a.of, "!") && a.def == "" && !given {
			return "", nil, fmt.Errorf("argument %s is missing", a.name)
		}
	}
	for v := range variables {
		if !used[v] {
			return "", nil, fmt.Errorf("variable %s is not used", v)
		}
	}
	value = s.value(p, f, 0)
	p.want("}")
	if f.name == "echo" {
		raw, err := json.Marshal(variables)
		return f.name, string(raw), errors.Join(err, p.err)
	}
	return f.name, value, p.err
}

func (t *typ) field(name string) *field {
	if i := slices.IndexFunc(t.fields, func(f *field) bool { return f.name == name }); i >= 0 {
		return t.fields[i]
	}
	return nil
}

// value makes the value of a field, and reads what is asked of it.
func (s *Server) value(p *parser, f *field, level int) any {
	for _, a := range f.args {
		if level > 0 && strings.HasSuffix(a.of, "!") && a.def == "" {
			p.fail("field %s needs the argument %s", f.name, a.name)
		}
	}
	t := s.types[base(f.of)]
	var one any
	switch {
	case t == nil:
		p.fail("unknown type %s", f.of)
		return nil
	case t.kind == "SCALAR" || t.kind == "ENUM":
		if p.peek() == "{" {
			p.fail("field %s has no fields", f.name)
			return nil
		}
		one = map[string]any{"Int": 7, "Float": 1.5, "Boolean": true}[t.name]
		if one == nil {
			one = f.name
		}
	default:
		one = s.object(p, t, level)
	}
	if strings.HasPrefix(f.of, "[") {
		return []any{one, one}
	}
	return one
}

func (s *Server) object(p *parser, t *typ, level int) map[string]any {
	p.want("{")
	out := map[string]any{}
	for p.err == nil && p.peek() != "}" && p.peek() != "" {
		word := p.take()
		switch f := t.field(word); {
		case word == "...":
			p.want("on")
			kind := p.take()
			if !slices.Contains(t.members, kind) || s.types[kind] == nil {
				p.fail("%s is never a %s", t.name, kind)
				return nil
			}
			part := s.object(p, s.types[kind], level+1)
			if kind == t.members[0] {
				maps.Copy(out, part)
			}
		case word == "__typename":
			out[word] = t.name
		case f == nil:
			p.fail("type %s has no field %s", t.name, word)
		default:
			out[word] = s.value(p, f, level+1)
		}
	}
	if len(out) == 0 && p.err == nil && len(t.members) == 0 {
		p.fail("nothing is asked of %s", t.name)
	}
	p.want("}")
	return out
}

var words = regexp.MustCompile(`\.\.\.|\w+|[^\s,]`)

type parser struct {
	words []string
	err   error
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) take() string {
	w := p.peek()
	p.words = p.words[min(1, len(p.words)):]
	return w
}

func (p *parser) want(word string) {
	if got := p.take(); got != word {
		p.fail("expected %q, not %q", word, got)
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (s *Server) introspection() map[string]any {
	var types []any
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		t := s.types[name]
		out := map[string]any{"kind": t.kind, "name": name, "fields": nil}
		switch t.kind {
		case "OBJECT", "INTERFACE":
			var fields []any
			for _, f := range t.fields {
				fields = append(fields, map[string]any{"name": f.name, "args": s.inputs(f.args), "type": s.ref(f.of)})
			}
			out["fields"] = fields
		case "INPUT_OBJECT":
			out["inputFields"] = s.inputs(t.fields)
		case "ENUM", "UNION":
			list := []any{}
			for _, m := range t.members {
				list = append(list, map[string]any{"name": m})
			}
			out[map[string]string{"ENUM": "enumValues", "UNION": "possibleTypes"}[t.kind]] = list
		}
		types = append(types, out)
	}
	top := map[string]any{"types": types}
	for _, kind := range []string{"Query", "Mutation", "Subscription"} {
		if s.types[kind] != nil {
			top[strings.ToLower(kind)+"Type"] = map[string]any{"name": kind}
		}
	}
	return top
}

func (s *Server) inputs(list []*field) []any {
	out := []any{}
	for _, a := range list {
		one := map[string]any{"name": a.name, "type": s.ref(a.of), "defaultValue": nil}
		if a.def != "" {
			one["defaultValue"] = a.def
		}
		out = append(out, one)
	}
	return out
}

func (s *Server) ref(of string) map[string]any {
	if inner, ok := strings.CutSuffix(of, "!"); ok {
		return map[string]any{"kind": "NON_NULL", "name": nil, "ofType": s.ref(inner)}
	}
	if inner, ok := strings.CutPrefix(of, "["); ok {
		return map[string]any{"kind": "LIST", "name": nil, "ofType": s.ref(strings.TrimSuffix(inner, "]"))}
	}
	kind := "SCALAR"
	if t := s.types[of]; t != nil {
		kind = t.kind
	}
	return map[string]any{"kind": kind, "name": of, "ofType": nil}
}
