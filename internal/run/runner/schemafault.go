package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/internal/schema"
)

// explain says where a value does not fit a schema and what belongs there. It
// quotes the schema and the names of arguments, never their values. It looks
// at what most schemas say; where it finds nothing it says so.
func explain(root *jsonschema.Schema, value any) string {
	x := explainer{root: root, left: 10_000}
	if text := x.look(root, value, ""); text != "" {
		return text
	}
	return "the arguments do not match the schema"
}

type explainer struct {
	root *jsonschema.Schema
	left int // schemas yet to look at: recursion and combinations end
}

// look returns the first thing wrong at a path, or "".
func (x *explainer) look(s *jsonschema.Schema, v any, path string) string {
	if x.left--; s == nil || x.left < 0 {
		return ""
	}
	if s.Ref != "" {
		if text := x.look(x.refer(s.Ref), v, path); text != "" {
			return text
		}
	}
	for _, try := range []func(*jsonschema.Schema, any, string) string{x.kind, x.bounds, x.combine, x.object, x.list} {
		if text := try(s, v, path); text != "" {
			return text
		}
	}
	return ""
}

func (x *explainer) refer(ref string) *jsonschema.Schema {
	if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
		return x.root.Defs[name]
	}
	if name, ok := strings.CutPrefix(ref, "#/definitions/"); ok {
		return x.root.Definitions[name]
	}
	if ref == "#" {
		return x.root
	}
	return nil
}

func at(path string) string {
	if path == "" {
		return "the arguments"
	}
	return "argument " + path
}

func (x *explainer) kind(s *jsonschema.Schema, v any, path string) string {
	want := s.Types
	if s.Type != "" {
		want = []string{s.Type}
	}
	got := schema.TypeOf(v)
	if len(want) > 0 && !slices.Contains(want, got) && !(got == "integer" && slices.Contains(want, "number")) {
		return fmt.Sprintf("%s: want %s, got %s", at(path), strings.Join(want, " or "), got)
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return jsonschema.Equal(e, v) }) {
		return fmt.Sprintf("%s: want one of %s", at(path), some(s.Enum))
	}
	if s.Const != nil && !jsonschema.Equal(*s.Const, v) {
		return fmt.Sprintf("%s: want %s", at(path), some([]any{*s.Const}))
	}
	return ""
}

// some returns the first few values that a schema names.
func some(list []any) string {
	var out []string
	for i, e := range list {
		if i == 12 {
			out = append(out, fmt.Sprintf("… (%d in all)", len(list)))
			break
		}
		raw, _ := json.Marshal(e)
		out = append(out, clip(string(raw)))
	}
	return strings.Join(out, ", ")
}

func clip(s string) string {
	if len(s) <= 64 {
		return s
	}
	return strings.ToValidUTF8(s[:64], "") + "…"
}

func (x *explainer) bounds(s *jsonschema.Schema, v any, path string) string {
	limit := func(word string, n any) string { return fmt.Sprintf("%s: want %s %v", at(path), word, n) }
	switch v := v.(type) {
	case float64:
		switch {
		case s.Minimum != nil && v < *s.Minimum:
			return limit("at least", *s.Minimum)
		case s.Maximum != nil && v > *s.Maximum:
			return limit("at most", *s.Maximum)
		case s.ExclusiveMinimum != nil && v <= *s.ExclusiveMinimum:
			return limit("more than", *s.ExclusiveMinimum)
		case s.ExclusiveMaximum != nil && v >= *s.ExclusiveMaximum:
			return limit("less than", *s.ExclusiveMaximum)
		case s.MultipleOf != nil && math.Mod(v, *s.MultipleOf) != 0:
			return limit("a multiple of", *s.MultipleOf)
		}
	case string:
		n := utf8.RuneCountInString(v)
		switch {
		case s.MinLength != nil && n < *s.MinLength:
			return fmt.Sprintf("%s: want at least %d characters", at(path), *s.MinLength)
		case s.MaxLength != nil && n > *s.MaxLength:
			return fmt.Sprintf("%s: want at most %d characters", at(path), *s.MaxLength)
		}
		if s.Pattern != "" {
			if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(v) {
				return fmt.Sprintf("%s: want text that matches %s", at(path), clip(s.Pattern))
			}
		}
	}
	return ""
}

func (x *explainer) combine(s *jsonschema.Schema, v any, path string) string {
	for _, one := range s.AllOf {
		if text := x.look(one, v, path); text != "" {
			return text
		}
	}
	for word, list := range map[string][]*jsonschema.Schema{"one": s.OneOf, "any": s.AnyOf} {
		if len(list) == 0 {
			continue
		}
		var first string
		fits := false
		for _, one := range list {
			text := x.look(one, v, path)
			fits = fits || text == ""
			if first == "" {
				first = text
			}
		}
		if !fits {
			return fmt.Sprintf("%s (or another of the %d forms that it may have, of which %s must fit)", first, len(list), word)
		}
	}
	return ""
}

// article goes before the name of a type.
func article(kind string) string {
	if strings.IndexByte("aio", kind[0]) >= 0 { // array, integer, object
		return "an"
	}
	return "a"
}

func (x *explainer) object(s *jsonschema.Schema, v any, path string) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			want := ""
			if p := s.Properties[name]; p != nil && p.Type != "" {
				want = " (" + article(p.Type) + " " + p.Type + ")"
			}
			return fmt.Sprintf("argument %s/%s is missing%s", path, pointer(name), want)
		}
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil ||
		s.UnevaluatedProperties != nil && s.UnevaluatedProperties.Not != nil && s.AllOf == nil && s.AnyOf == nil && s.OneOf == nil && s.Ref == "" && s.If == nil
	for _, name := range slices.Sorted(maps.Keys(m)) {
		inner := path + "/" + pointer(name)
		if p := s.Properties[name]; p != nil {
			if text := x.look(p, m[name], inner); text != "" {
				return text
			}
			continue
		}
		if closed && len(s.PatternProperties) == 0 {
			return fmt.Sprintf("unknown argument %s; the arguments are: %s", inner, known(s.Properties))
		}
		if s.AdditionalProperties != nil {
			if text := x.look(s.AdditionalProperties, m[name], inner); text != "" {
				return text
			}
		}
	}
	return ""
}

func known(p map[string]*jsonschema.Schema) string {
	if len(p) == 0 {
		return "none"
	}
	names := slices.Sorted(maps.Keys(p))
	if len(names) > 24 {
		names = append(names[:24], "…")
	}
	return strings.Join(names, ", ")
}

// pointer writes a name as part of a JSON pointer, without what could hide in
// it.
func pointer(name string) string {
	name = strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(name))
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

func (x *explainer) list(s *jsonschema.Schema, v any, path string) string {
	list, ok := v.([]any)
	if !ok {
		return ""
	}
	switch {
	case s.MinItems != nil && len(list) < *s.MinItems:
		return fmt.Sprintf("%s: want at least %d items", at(path), *s.MinItems)
	case s.MaxItems != nil && len(list) > *s.MaxItems:
		return fmt.Sprintf("%s: want at most %d items", at(path), *s.MaxItems)
	}
	for i, item := range list {
		one := s.Items
		if i < len(s.PrefixItems) {
			one = s.PrefixItems[i]
		}
		if text := x.look(one, item, path+"/"+strconv.Itoa(i)); text != "" {
			return text
		}
	}
	return ""
}
