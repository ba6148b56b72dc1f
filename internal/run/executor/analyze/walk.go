package analyze

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// object goes through the keys of an object.
func (w *walk) object(s map[string]any, v any, path string, depth int) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return true
	}
	fits := w.required(s, m, path)
	named, _ := s["properties"].(map[string]any)
	byPattern, _ := s["patternProperties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if w.over {
			return fits
		}
		inner := w.inner(path, name)
		if one, ok := s["propertyNames"]; ok {
			fits = w.visit(one, name, inner, depth+1) && fits
		}
		one, known := named[name]
		if known {
			fits = w.visit(one, m[name], inner, depth+1) && fits
		}
		for _, pattern := range slices.Sorted(maps.Keys(byPattern)) {
			if w.matches(pattern, name) {
				known = true
				fits = w.visit(byPattern[pattern], m[name], inner, depth+1) && fits
			}
		}
		if rest, ok := s["additionalProperties"]; ok && !known {
			fits = w.other(rest, m[name], inner, depth, "there is no such key") && fits
		}
		if rest, ok := s["unevaluatedProperties"]; ok && !known {
			w.quietly(rest, m[name], inner, depth+1) // only the library knows which are left
		}
	}
	return fits
}

// other looks at what a schema has no name for; false means that nothing may be.
func (w *walk) other(rest, v any, path string, depth int, none string) bool {
	if rest == false {
		return w.wrong(path, "%s", none)
	}
	return w.visit(rest, v, path, depth+1)
}

func (w *walk) required(s map[string]any, m map[string]any, path string) bool {
	fits := true
	list, _ := s["required"].([]any)
	for _, one := range list {
		name, _ := one.(string)
		if _, ok := m[name]; !ok {
			fits = w.wrong(w.inner(path, name), "it is missing")
		}
	}
	n := float64(len(m))
	if least, ok := s["minProperties"].(float64); ok && n < least {
		fits = w.wrong(path, "want at least %v keys, got %v", least, n)
	}
	if most, ok := s["maxProperties"].(float64); ok && n > most {
		fits = w.wrong(path, "want at most %v keys, got %v", most, n)
	}
	return fits
}

// list goes through the items of a list.
func (w *walk) list(s map[string]any, v any, path string, depth int) bool {
	items, ok := v.([]any)
	if !ok {
		return true
	}
	fits := true
	first, _ := s["prefixItems"].([]any)
	rest, hasRest := s["items"]
	if old, ok := rest.([]any); ok { // as draft 07 writes it
		first = old
		rest, hasRest = s["additionalItems"]
	}
	contains, hasContains := s["contains"]
	held := 0
	for i, item := range items {
		inner := w.below(path, strconv.Itoa(i))
		switch {
		case i < len(first):
			fits = w.visit(first[i], item, inner, depth+1) && fits
		case hasRest:
			fits = w.other(rest, item, inner, depth, "there are too many items") && fits
		}
		if hasContains && w.quietly(contains, item, inner, depth+1) {
			held++
		}
		if more, ok := s["unevaluatedItems"]; ok {
			w.quietly(more, item, inner, depth+1)
		}
		if w.over {
			return fits
		}
	}
	if least, ok := s["minContains"].(float64); hasContains && held == 0 && (!ok || least > 0) {
		fits = w.wrong(path, "no item has the required form")
	}
	return fits
}

func (w *walk) inner(path, key string) string {
	if w.muted > 0 {
		return ""
	}
	return w.below(path, pointer(key))
}

// pointer writes a key as part of a JSON pointer, fit to be shown.
func pointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(named(name))
}
