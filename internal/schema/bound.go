package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// mostChecks is how many schemas may be looked at for one value, references
// followed. A validator goes through every way that a schema leads, and one of a
// few lines can have more of them than there is time for.
const mostChecks = 10_000

// Bounded reports whether checking one value ends, and soon. Schemas that lead
// deeper into the value end with it; those that lead on at the same place must
// not come back to where they were.
func Bounded(root *jsonschema.Schema) error {
	b := bounds{root: root, cost: map[*jsonschema.Schema]int{}, open: map[*jsonschema.Schema]bool{}}
	return b.all(root, map[*jsonschema.Schema]bool{}, 0)
}

type bounds struct {
	root *jsonschema.Schema
	cost map[*jsonschema.Schema]int  // of those that are known
	open map[*jsonschema.Schema]bool // of those that are on the way
}

// all looks at a schema and at every one within it.
func (b *bounds) all(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool, depth int) error {
	if s == nil || seen[s] {
		return nil
	}
	seen[s] = true
	if depth > 500 {
		return errors.New("nested too deeply")
	}
	if _, err := b.check(s); err != nil {
		return err
	}
	for _, inner := range slices.Concat(InPlace(s), within(s)) {
		if err := b.all(inner, seen, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// check counts what is looked at for one value at s.
func (b *bounds) check(s *jsonschema.Schema) (int, error) {
	if n, known := b.cost[s]; known {
		return n, nil
	}
	if b.open[s] {
		return 0, errors.New("schema refers to itself without end")
	}
	b.open[s] = true
	defer delete(b.open, s)
	sum := 1
	next := InPlace(s)
	for _, ref := range []string{s.Ref, s.DynamicRef} {
		if ref != "" {
			next = append(next, Find(b.root, ref))
		}
	}
	for _, inner := range next {
		if inner == nil {
			continue
		}
		n, err := b.check(inner)
		if err != nil {
			return 0, err
		}
		if sum += n; sum > mostChecks {
			return 0, fmt.Errorf("to check one value takes more than %d steps", mostChecks)
		}
	}
	b.cost[s] = sum
	return sum, nil
}

// Find follows a reference within a schema; nil where it leads nowhere, or
// where only the resolver can tell.
func Find(root *jsonschema.Schema, ref string) *jsonschema.Schema {
	if ref == "#" {
		return root
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return named(root, strings.TrimPrefix(ref, "#"), 0)
	}
	s := root
	words := strings.Split(path, "/")
	for len(words) > 0 && s != nil {
		s, words = onward(s, words)
	}
	return s
}

// onward goes one key of a pointer further.
func onward(s *jsonschema.Schema, words []string) (*jsonschema.Schema, []string) {
	name := func() string {
		if len(words) < 2 {
			return ""
		}
		return strings.NewReplacer("~1", "/", "~0", "~").Replace(words[1])
	}
	in := func(m map[string]*jsonschema.Schema) (*jsonschema.Schema, []string) {
		return m[name()], words[min(2, len(words)):]
	}
	of := func(list []*jsonschema.Schema) (*jsonschema.Schema, []string) {
		var i int
		if _, err := fmt.Sscan(name(), &i); err != nil || i < 0 || i >= len(list) {
			return nil, nil
		}
		return list[i], words[2:]
	}
	switch words[0] {
	case "$defs":
		return in(s.Defs)
	case "definitions":
		return in(s.Definitions)
	case "properties":
		return in(s.Properties)
	case "patternProperties":
		return in(s.PatternProperties)
	case "dependentSchemas":
		return in(s.DependentSchemas)
	case "allOf":
		return of(s.AllOf)
	case "anyOf":
		return of(s.AnyOf)
	case "oneOf":
		return of(s.OneOf)
	case "prefixItems":
		return of(s.PrefixItems)
	case "items":
		return s.Items, words[1:]
	case "not":
		return s.Not, words[1:]
	case "if":
		return s.If, words[1:]
	case "then":
		return s.Then, words[1:]
	case "else":
		return s.Else, words[1:]
	case "additionalProperties":
		return s.AdditionalProperties, words[1:]
	case "contains":
		return s.Contains, words[1:]
	case "propertyNames":
		return s.PropertyNames, words[1:]
	}
	return nil, nil
}

// named finds the schema with an anchor or an id.
func named(s *jsonschema.Schema, name string, depth int) *jsonschema.Schema {
	if s == nil || depth > 200 {
		return nil
	}
	if name != "" && (s.Anchor == name || s.DynamicAnchor == name || s.ID == name) {
		return s
	}
	for _, inner := range slices.Concat(InPlace(s), within(s)) {
		if found := named(inner, name, depth+1); found != nil {
			return found
		}
	}
	return nil
}

// InPlace returns the schemas that the same value is held to.
func InPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else})
	for _, m := range []map[string]*jsonschema.Schema{s.DependentSchemas, s.DependencySchemas} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out = append(out, m[name])
		}
	}
	return slices.DeleteFunc(out, func(s *jsonschema.Schema) bool { return s == nil })
}

// within returns the schemas of what lies in a value, and those that are only
// referred to.
func within(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.PrefixItems, s.ItemsArray, []*jsonschema.Schema{
		s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems, s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties, s.ContentSchema,
	})
	for _, m := range []map[string]*jsonschema.Schema{s.Defs, s.Definitions, s.Properties, s.PatternProperties} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out = append(out, m[name])
		}
	}
	return slices.DeleteFunc(out, func(s *jsonschema.Schema) bool { return s == nil })
}
