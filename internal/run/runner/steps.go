package runner

import (
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/internal/schema"
)

// mostSteps is how many schemas may be looked at for the arguments of one call.
const mostSteps = 2_000_000

// tooLong reports whether holding a value to a schema takes longer than anybody
// waits: a validator tries every way, and where a schema has two at each level
// of a value, their number doubles with each. The ways are counted here without
// being gone: each pair of a schema and a value once.
func tooLong(root *jsonschema.Schema, value any) bool {
	c := stepCounter{root: root, known: map[stepKey]int{}, pairs: mostSteps}
	return c.count(root, place(value), 0) > mostSteps || c.pairs < 0
}

// A node is a value with those in it, so that it can be told from its equals.
type node struct {
	named map[string]*node
	items []*node
}

func place(v any) *node {
	n := &node{}
	switch v := v.(type) {
	case map[string]any:
		n.named = make(map[string]*node, len(v))
		for name, inner := range v {
			n.named[name] = place(inner)
		}
	case []any:
		for _, inner := range v {
			n.items = append(n.items, place(inner))
		}
	}
	return n
}

type stepKey struct {
	schema *jsonschema.Schema
	at     *node
}

type stepCounter struct {
	root  *jsonschema.Schema
	known map[stepKey]int
	pairs int // that may still be looked at
}

// count returns how many schemas a validator looks at for one value, at most
// mostSteps and one more.
func (c *stepCounter) count(s *jsonschema.Schema, at *node, depth int) int {
	if s == nil {
		return 0
	}
	key := stepKey{s, at}
	if n, ok := c.known[key]; ok {
		return n
	}
	if c.pairs--; c.pairs < 0 || depth > 10_000 {
		return mostSteps + 1
	}
	sum := 1
	add := func(inner *jsonschema.Schema, at *node) {
		if sum <= mostSteps {
			sum = min(sum+c.count(inner, at, depth+1), mostSteps+1)
		}
	}
	for _, inner := range schema.InPlace(s) {
		add(inner, at)
	}
	for _, ref := range []string{s.Ref, s.DynamicRef} {
		if ref != "" {
			add(schema.Find(c.root, ref), at)
		}
	}
	for name, child := range at.named {
		add(s.Properties[name], child)
		for _, inner := range s.PatternProperties {
			add(inner, child)
		}
		if _, said := s.Properties[name]; !said {
			add(s.AdditionalProperties, child)
			add(s.UnevaluatedProperties, child)
		}
	}
	lists := slices.Concat(s.PrefixItems, s.ItemsArray)
	for i, child := range at.items {
		if i < len(lists) {
			add(lists[i], child)
		}
		for _, inner := range []*jsonschema.Schema{s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems} {
			add(inner, child)
		}
	}
	c.known[key] = sum
	return sum
}
