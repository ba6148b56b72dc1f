package analyze

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/schema"
	"ken/internal/untrusted"
)

const (
	mostSchema   = 256 << 10 // bytes
	mostSteps    = 1_500_000 // that are made to check one value
	deepest      = 400       // levels of schemas for one value
	mostProblems = 20
)

// A problem is a place in a value that does not fit.
type problem struct {
	Path  string `json:"path"` // a JSON pointer; empty: the whole value
	Error string `json:"error"`
}

// A judge holds values to one schema. The library decides; a walk of our own
// goes before it, since a schema of a few lines can lead more ways than there
// is time for, and names every place where the library names the first.
type judge struct {
	root     any
	resolved *jsonschema.Resolved
	draft7   bool
}

func badSchema(call capability.Call, err error) error {
	return executor.BadArguments(call, fmt.Errorf("the schema: %w", err), "give a JSON Schema of draft 2020-12 or 07 that refers only to itself")
}

// compile reads a schema.
func compile(raw json.RawMessage) (_ *judge, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("cannot be read") // the library gave up on it
		}
	}()
	if len(raw) > mostSchema {
		return nil, fmt.Errorf("has %d bytes, more than %d", len(raw), mostSchema)
	}
	j := &judge{}
	if err := json.Unmarshal(raw, &j.root); err != nil {
		return nil, errors.New("not JSON")
	}
	root, ok := j.root.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	version, _ := root["$schema"].(string)
	j.draft7 = strings.Contains(version, "draft-07")
	if err := j.references(j.root, 0); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %s", untrusted.Line(err.Error(), 200))
	}
	if j.resolved, err = s.Resolve(nil); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %s", untrusted.Line(err.Error(), 200))
	}
	return j, nil
}

// references refuses what the walk could not follow as the library does.
func (j *judge) references(s any, depth int) error {
	if depth > deepest {
		return errors.New("nested too deeply")
	}
	switch s := s.(type) {
	case []any:
		for _, one := range s {
			if err := j.references(one, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, one := range s {
			text, isText := one.(string)
			switch {
			case key == "enum" || key == "const" || key == "default" || key == "examples":
				continue // values, and no schemas
			case key == "$ref" && isText && j.find(text) == nil:
				return fmt.Errorf("refers to %s, which the schema does not contain", named(text))
			case key == "$id" && isText && depth > 0, key == "$dynamicRef" && isText, key == "$recursiveRef" && isText:
				return fmt.Errorf("has %s, which is not followed", key)
			}
			if err := j.references(one, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// find follows a reference of the form #/$defs/name.
func (j *judge) find(ref string) any {
	at := j.root
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' || strings.Contains(pointer, "%") {
		return nil // by name or by address, or in letters that the library would read as others
	}
	for _, word := range strings.Split(pointer, "/")[1:] {
		word = strings.NewReplacer("~1", "/", "~0", "~").Replace(word)
		switch here := at.(type) {
		case map[string]any:
			at = here[word]
		case []any:
			i, err := strconv.Atoi(word)
			if err != nil || i < 0 || i >= len(here) {
				return nil
			}
			at = here[i]
		default:
			return nil
		}
	}
	return at
}

// check returns what is wrong with a value; nothing where it fits. More counts
// the problems that are not listed. It makes at most so many steps as are left,
// and takes them off.
func (j *judge) check(raw json.RawMessage, left *int) (list []problem, more int) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return []problem{{Error: "it cannot be read: " + untrusted.Line(err.Error(), 200)}}, 0
	}
	w := walk{judge: j, left: *left, patterns: map[string]pattern{}}
	w.visit(j.root, value, "", 0)
	*left = w.left
	if w.over {
		return []problem{{Error: fmt.Sprintf("checking the value takes more than %d steps or goes deeper than %d levels", mostSteps, deepest)}}, 0
	}
	err := j.decide(value)
	if err == nil {
		return nil, 0
	}
	if len(w.found) == 0 {
		w.found = []problem{{Error: untrusted.Line(err.Error(), 300)}}
	}
	return w.found, w.more
}

func (j *judge) decide(value any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the schema cannot be applied to the value")
		}
	}()
	return j.resolved.Validate(value)
}

// A walk goes every way that a schema leads through a value, and counts what
// the library will have to do there.
type walk struct {
	*judge
	left     int
	over     bool
	muted    int // above zero: a way that need not fit
	found    []problem
	more     int
	patterns map[string]pattern
}

func (w *walk) spend(steps int) {
	if w.left -= steps; w.left < 0 {
		w.over = true
	}
}

// nodes counts what a value holds: the library prints all of it where its type
// is wrong.
func nodes(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			n += nodes(one)
		}
	case map[string]any:
		for _, one := range v {
			n += nodes(one)
		}
	case string:
		n += len(v) / 64
	}
	return n
}

// below returns the path of what lies in a value, where anyone will read it.
func (w *walk) below(path, name string) string {
	if w.muted > 0 {
		return ""
	}
	return path + "/" + name
}

func (w *walk) wrong(path, format string, args ...any) bool {
	switch {
	case w.muted > 0:
	case len(w.found) == mostProblems:
		w.more++
	default:
		w.found = append(w.found, problem{path, fmt.Sprintf(format, args...)})
	}
	return false
}

// quietly reports whether a schema fits, and notes nothing.
func (w *walk) quietly(s, v any, path string, depth int) bool {
	w.muted++
	defer func() { w.muted-- }()
	return w.visit(s, v, path, depth)
}

// visit looks at one schema, and reports whether nothing was found.
func (w *walk) visit(schema, v any, path string, depth int) bool {
	if w.spend(1); w.over || depth > deepest {
		w.over = true
		return true
	}
	if allowed, ok := schema.(bool); ok {
		return allowed || w.wrong(path, "no value is allowed here")
	}
	s, ok := schema.(map[string]any)
	if !ok {
		return true
	}
	for _, word := range s {
		switch word := word.(type) {
		case []any:
			w.spend(len(word))
		case map[string]any:
			w.spend(len(word))
		}
	}
	fits := true
	if ref, ok := s["$ref"].(string); ok {
		fits = w.visit(w.find(ref), v, path, depth+1)
		if w.draft7 {
			return fits
		}
	}
	fits = w.kind(s, v, path) && fits
	fits = w.bounds(s, v, path) && fits
	fits = w.combined(s, v, path, depth) && fits
	fits = w.object(s, v, path, depth) && fits
	return w.list(s, v, path, depth) && fits
}

func (w *walk) kind(s map[string]any, v any, path string) bool {
	fits := true
	got := schema.TypeOf(v)
	var want []string
	switch t := s["type"].(type) {
	case string:
		want = []string{t}
	case []any:
		for _, one := range t {
			name, _ := one.(string)
			want = append(want, name)
		}
	}
	if len(want) > 0 && !slices.Contains(want, got) && !(got == "integer" && slices.Contains(want, "number")) {
		w.spend(nodes(v))
		fits = w.wrong(path, "want %s, got %s", named(strings.Join(want, " or ")), got)
	}
	equals := func(e any) bool { return equal(e, v) }
	if list, ok := s["enum"].([]any); ok && !slices.ContainsFunc(list, equals) {
		w.spend(nodes(v))
		fits = w.wrong(path, "want one of %s", quoted(list))
	}
	if one, ok := s["const"]; ok && !equals(one) {
		w.spend(nodes(v))
		fits = w.wrong(path, "want %s", quoted([]any{one}))
	}
	return fits
}

// equal compares what JSON can hold, and plain values quickly.
func equal(a, b any) bool {
	switch b.(type) {
	case []any:
		_, ok := a.([]any)
		return ok && jsonschema.Equal(a, b)
	case map[string]any:
		_, ok := a.(map[string]any)
		return ok && jsonschema.Equal(a, b)
	}
	return a == b
}

// quoted returns the first few values that a schema names.
func quoted(list []any) string {
	var out []string
	for i, e := range list {
		if i == 12 {
			out = append(out, fmt.Sprintf("… (%d in all)", len(list)))
			break
		}
		raw, _ := json.Marshal(e) // it came from JSON
		out = append(out, named(string(raw)))
	}
	return strings.Join(out, ", ")
}

func (w *walk) bounds(s map[string]any, v any, path string) bool {
	fits := true
	number := func(key string) (float64, bool) { n, ok := s[key].(float64); return n, ok }
	hold := func(key, word string, size float64, holds func(limit float64) bool) {
		if limit, ok := number(key); ok && !holds(limit) {
			fits = w.wrong(path, "want %s %v, got %v", word, limit, size)
		}
	}
	switch v := v.(type) {
	case float64:
		hold("minimum", "at least", v, func(l float64) bool { return v >= l })
		hold("maximum", "at most", v, func(l float64) bool { return v <= l })
		hold("exclusiveMinimum", "more than", v, func(l float64) bool { return v > l })
		hold("exclusiveMaximum", "less than", v, func(l float64) bool { return v < l })
	case string:
		n := float64(utf8.RuneCountInString(v))
		hold("minLength", "a length of at least", n, func(l float64) bool { return n >= l })
		hold("maxLength", "a length of at most", n, func(l float64) bool { return n <= l })
		if p, ok := s["pattern"].(string); ok && !w.matches(p, v) {
			fits = w.wrong(path, "want text that matches %s", named(p))
		}
	case []any:
		n := float64(len(v))
		hold("minItems", "a length of at least", n, func(l float64) bool { return n >= l })
		hold("maxItems", "a length of at most", n, func(l float64) bool { return n <= l })
	}
	return fits
}

// A pattern is compiled, and weighed: what a match costs grows with it.
type pattern struct {
	*regexp.Regexp
	weight int
}

// matches reports whether a pattern matches; one that is none, does.
func (w *walk) matches(text, value string) bool {
	p, ok := w.patterns[text]
	if !ok {
		p.Regexp, _ = regexp.Compile(text) // the library refused what is none
		p.weight = 1
		if tree, err := syntax.Parse(text, syntax.Perl); err == nil {
			if program, err := syntax.Compile(tree.Simplify()); err == nil {
				p.weight += len(program.Inst) / 16
			}
		}
		w.patterns[text] = p
	}
	w.spend((1 + len(value)) * p.weight)
	return w.over || p.Regexp == nil || p.MatchString(value)
}

// combined goes through the schemas for the same value.
func (w *walk) combined(s map[string]any, v any, path string, depth int) bool {
	fits := true
	list := func(key string) []any { l, _ := s[key].([]any); return l }
	for _, one := range list("allOf") {
		fits = w.visit(one, v, path, depth+1) && fits
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		forms, good := list(key), 0
		for _, one := range forms {
			if w.quietly(one, v, path, depth+1) {
				good++
			}
		}
		if len(forms) > 0 && good == 0 {
			fits = w.wrong(path, "matches none of the %d allowed forms", len(forms))
		} else if key == "oneOf" && good > 1 {
			fits = w.wrong(path, "matches %d of the %d forms; it must match exactly one", good, len(forms))
		}
	}
	if not, ok := s["not"]; ok && w.quietly(not, v, path, depth+1) {
		fits = w.wrong(path, "matches a form that is not allowed")
	}
	if test, ok := s["if"]; ok {
		branch := "else"
		if w.quietly(test, v, path, depth+1) {
			branch = "then"
		}
		if next, ok := s[branch]; ok {
			fits = w.visit(next, v, path, depth+1) && fits
		}
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		by, _ := s[key].(map[string]any)
		for name, one := range by {
			m, _ := v.(map[string]any)
			if _, ok := m[name]; ok {
				fits = w.visit(one, v, path, depth+1) && fits
			}
		}
	}
	return fits
}
