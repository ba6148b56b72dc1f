package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"ken/internal/spelling"
	"ken/internal/yamldoc"
)

// readMap returns the fields of the map at a key. A value that is not a map is an
// issue, with fix as what to write instead.
func readMap(r *yamldoc.Reader, key, fix string) (fields []yamldoc.Field, ok bool) {
	f, ok := r.Field(key)
	if !ok {
		return nil, false
	}
	m, isMap := f.Value.Any.(*yamldoc.Map)
	if !isMap {
		r.Issue(f.Line, key+" is "+f.Value.Kind()+", want a map", fix)
		return nil, false
	}
	return m.Fields, true
}

func readList(r *yamldoc.Reader, key string, names []string) []int {
	f, ok := r.Field(key)
	if !ok {
		return nil
	}
	return readWords(r, f, names)
}

func readWords(r *yamldoc.Reader, f yamldoc.Field, names []string) []int {
	items, ok := f.Value.Any.([]yamldoc.Value)
	if !ok {
		items = []yamldoc.Value{f.Value}
	}
	var out []int
	for _, item := range items {
		word, _ := item.Any.(string)
		i := slices.Index(names, word)
		if i < 0 {
			r.Issue(item.Line, fmt.Sprintf("%s: unknown value %q", f.Key, word), "known: "+strings.Join(names, ", "))
			continue
		}
		out = append(out, i)
	}
	return out
}

func readWord[T ~uint8](r *yamldoc.Reader, key string, names []string, now T) T {
	f, ok := r.Field(key)
	if !ok {
		return now
	}
	word, isText := f.Value.Any.(string)
	if b, isBool := f.Value.Any.(bool); isBool && !b {
		word, isText = "off", true // YAML of old reads off as false
	}
	i := slices.Index(names, word)
	if !isText || i < 0 {
		fix := "write one of " + strings.Join(names, ", ")
		if near := spelling.Nearest(word, names); near != "" {
			fix = "did you mean " + near + "?"
		}
		r.Issue(f.Line, fmt.Sprintf("%s: unknown value %q", key, word), fix)
		return now
	}
	return T(i)
}

// nothingEmpty refuses keys without a value: they would otherwise be read as
// not there, and what is not there has a default.
func nothingEmpty(m *yamldoc.Map, at string) error {
	if m == nil {
		return nil
	}
	for _, f := range m.Fields {
		if err := valueNotEmpty(f.Value, f.Line, at+f.Key); err != nil {
			return err
		}
	}
	return nil
}

func valueNotEmpty(v yamldoc.Value, line int, at string) error {
	switch x := v.Any.(type) {
	case nil:
		return &yamldoc.Error{Line: line, Message: at + " has no value", Fix: "write one, or remove the key"}
	case *yamldoc.Map:
		return nothingEmpty(x, at+".")
	case []yamldoc.Value:
		for i, item := range x {
			if err := valueNotEmpty(item, item.Line, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}
