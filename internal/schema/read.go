package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	mostBytes = 1 << 20 // larger schemas are refused
	mostDepth = 200     // of nesting

	mostSearched = 64 << 10 // bytes in which the part that is wrong is looked for
)

// The dialects that values can be held to.
const (
	draft07   = "http://json-schema.org/draft-07/schema#"
	draft2020 = "https://json-schema.org/draft/2020-12/schema"
)

// Read reads the schema of a call's arguments. Its error says which part of the
// schema cannot be used and why: a schema that Ken cannot hold arguments to is
// no schema. References lead within the schema; nothing is fetched.
//
// Dialects that say the same in all that Ken checks are read as one of two:
// draft-04 and draft-06 as draft-07, 2019-09 as 2020-12. A schema that names no
// dialect is 2020-12, and may list items and dependencies in the older way.
func Read(raw json.RawMessage) (root *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil { // of the validator, at what a server sent
			root, err = nil, fmt.Errorf("schema cannot be read: %v", p)
		}
	}()
	if len(raw) > mostBytes {
		return nil, fmt.Errorf("schema has %d bytes, more than %d", len(raw), mostBytes)
	}
	if Depth(raw) > mostDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", mostDepth)
	}
	root = &jsonschema.Schema{}
	if err := json.Unmarshal(raw, root); err != nil {
		switch {
		case !json.Valid(raw):
			return nil, errors.New("invalid JSON")
		case len(raw) > mostSearched:
			return nil, errors.New("not a JSON schema")
		}
		return nil, misread(raw, "", err)
	}
	dialect, err := dialectOf(root.Schema)
	if err != nil {
		return nil, err
	}
	if root.Schema != "" {
		root.Schema = dialect
	}
	if err := (&reader{dialect}).read(root, ""); err != nil {
		return nil, err
	}
	if !mayBe(root, "object") {
		return nil, errors.New("/type does not allow an object, and arguments are one")
	}
	if err := Bounded(root); err != nil {
		return nil, err
	}
	if _, err := root.CloneSchemas().Resolve(nil); err != nil {
		return nil, unresolved(root, err)
	}
	return root, nil
}

func dialectOf(name string) (string, error) {
	plain := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://"), "#")
	switch plain {
	case "json-schema.org/draft-04/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema":
		return draft07, nil
	case "", "json-schema.org/schema", "json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema":
		return draft2020, nil
	}
	return "", fmt.Errorf("/$schema names the dialect %s, which Ken does not know; use %s", short(name), draft2020)
}

// A reader makes a schema one that the validator holds values to in all its
// words, or says which of them it cannot.
type reader struct{ dialect string }

func (r *reader) read(s *jsonschema.Schema, at string) error {
	for _, word := range append(slices.Clone(s.Types), s.Type) {
		if word != "" && !slices.Contains([]string{"null", "boolean", "string", "number", "integer", "array", "object"}, word) {
			return fmt.Errorf("%s/type is %s, and there is no such type", at, short(word))
		}
	}
	for _, word := range []string{"$recursiveRef", "$recursiveAnchor"} {
		if _, is := s.Extra[word]; is {
			return fmt.Errorf("%s/%s cannot be checked; use $dynamicRef", at, word)
		}
	}
	if at != "" && s.Schema != "" {
		if d, err := dialectOf(s.Schema); err != nil || d != r.dialect {
			return fmt.Errorf("%s/$schema is another dialect than that of the whole", at)
		}
	}
	if err := r.patterns(s, at); err != nil {
		return err
	}
	if r.dialect == draft2020 {
		modern(s)
	}
	for _, part := range parts(s) {
		if part.schema == nil {
			return fmt.Errorf("%s%s is null, want a schema", at, part.at)
		}
		if err := r.read(part.schema, at+part.at); err != nil {
			return err
		}
	}
	return nil
}

// modern writes what the validator checks only in draft-07 as 2020-12 does.
func modern(s *jsonschema.Schema) {
	if s.ItemsArray != nil && s.PrefixItems == nil {
		s.PrefixItems, s.Items = s.ItemsArray, s.AdditionalItems
		s.ItemsArray, s.AdditionalItems = nil, nil
	}
	for name, list := range s.DependencyStrings {
		if s.DependentRequired == nil {
			s.DependentRequired = map[string][]string{}
		}
		s.DependentRequired[name] = append(s.DependentRequired[name], list...)
	}
	for name, one := range s.DependencySchemas {
		if s.DependentSchemas == nil {
			s.DependentSchemas = map[string]*jsonschema.Schema{}
		}
		if had := s.DependentSchemas[name]; had != nil {
			one = &jsonschema.Schema{AllOf: []*jsonschema.Schema{had, one}}
		}
		s.DependentSchemas[name] = one
	}
	s.DependencyStrings, s.DependencySchemas = nil, nil
}

// patterns writes patterns as the validator reads them.
func (r *reader) patterns(s *jsonschema.Schema, at string) error {
	compiled := func(at, pattern string) (string, error) {
		pattern = goPattern(pattern)
		if _, err := regexp.Compile(pattern); err != nil {
			return "", fmt.Errorf("%s cannot be checked: %w", at, err)
		}
		return pattern, nil
	}
	var err error
	if s.Pattern, err = compiled(at+"/pattern", s.Pattern); err != nil {
		return err
	}
	if len(s.PatternProperties) == 0 {
		return nil
	}
	list := make(map[string]*jsonschema.Schema, len(s.PatternProperties))
	for _, name := range slices.Sorted(maps.Keys(s.PatternProperties)) {
		pattern, err := compiled(at+"/patternProperties/"+token(name), name)
		if err != nil {
			return err
		}
		one := s.PatternProperties[name]
		if had := list[pattern]; had != nil {
			one = &jsonschema.Schema{AllOf: []*jsonschema.Schema{had, one}}
		}
		list[pattern] = one
	}
	s.PatternProperties = list
	return nil
}

// goPattern writes the characters that ECMAScript names by \u as Go does.
func goPattern(pattern string) string {
	if !strings.Contains(pattern, `\u`) {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		rest := pattern[i+2:]
		if pattern[i+1] == 'u' && len(rest) >= 4 && strings.Trim(rest[:4], "0123456789abcdefABCDEF") == "" {
			b.WriteString(`\x{` + rest[:4] + `}`)
			i += 5
			continue
		}
		if pattern[i+1] == 'u' && strings.HasPrefix(rest, "{") {
			b.WriteString(`\x`)
			i++
			continue
		}
		b.WriteString(pattern[i : i+2])
		i++
	}
	return b.String()
}

// mayBe reports whether a schema's own type lets a value of a type pass.
func mayBe(s *jsonschema.Schema, kind string) bool {
	return s.Type == "" && s.Types == nil || s.Type == kind || slices.Contains(s.Types, kind)
}

// unresolved says which reference leads nowhere.
func unresolved(root *jsonschema.Schema, err error) error {
	var found error
	var look func(s *jsonschema.Schema, at string)
	look = func(s *jsonschema.Schema, at string) {
		for word, ref := range map[string]string{"$ref": s.Ref, "$dynamicRef": s.DynamicRef} {
			switch {
			case found != nil || ref == "":
			case !strings.HasPrefix(ref, "#") && strings.Contains(err.Error(), "loading"):
				found = fmt.Errorf("%s/%s refers to %s, which is not in the schema; Ken fetches no schemas", at, word, short(ref))
			case strings.HasPrefix(ref, "#") && Find(root, ref) == nil:
				found = fmt.Errorf("%s/%s refers to %s, which is not there", at, word, short(ref))
			}
		}
		for _, part := range parts(s) {
			look(part.schema, at+part.at)
		}
	}
	if look(root, ""); found != nil {
		return found
	}
	return err
}

// A part is a schema in a schema, with its place from there.
type part struct {
	at     string
	schema *jsonschema.Schema
}

// parts are the schemas in a schema, in an order that is the same each time.
func parts(s *jsonschema.Schema) []part {
	var out []part
	for _, one := range []part{
		{"/items", s.Items}, {"/additionalItems", s.AdditionalItems}, {"/contains", s.Contains}, {"/unevaluatedItems", s.UnevaluatedItems},
		{"/additionalProperties", s.AdditionalProperties}, {"/propertyNames", s.PropertyNames}, {"/unevaluatedProperties", s.UnevaluatedProperties},
		{"/not", s.Not}, {"/if", s.If}, {"/then", s.Then}, {"/else", s.Else}, {"/contentSchema", s.ContentSchema},
	} {
		if one.schema != nil {
			out = append(out, one)
		}
	}
	for _, list := range []struct {
		at  string
		all []*jsonschema.Schema
	}{{"/allOf", s.AllOf}, {"/anyOf", s.AnyOf}, {"/oneOf", s.OneOf}, {"/prefixItems", s.PrefixItems}, {"/items", s.ItemsArray}} {
		for i, one := range list.all {
			out = append(out, part{list.at + "/" + strconv.Itoa(i), one})
		}
	}
	for _, m := range []struct {
		at  string
		all map[string]*jsonschema.Schema
	}{
		{"/properties", s.Properties}, {"/patternProperties", s.PatternProperties}, {"/dependentSchemas", s.DependentSchemas},
		{"/dependencies", s.DependencySchemas}, {"/$defs", s.Defs}, {"/definitions", s.Definitions},
	} {
		for _, name := range slices.Sorted(maps.Keys(m.all)) {
			out = append(out, part{m.at + "/" + token(name), m.all[name]})
		}
	}
	return out
}

// misread says which part of a schema the validator's reader fails at.
func misread(raw json.RawMessage, at string, err error) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return fmt.Errorf("%sit is %s, want a schema", place(at), kindOf(raw))
	}
	bad := func(one json.RawMessage) error { return json.Unmarshal(one, &jsonschema.Schema{}) }
	for _, word := range slices.Sorted(maps.Keys(members)) {
		value := members[word]
		alone, _ := json.Marshal(map[string]json.RawMessage{word: value}) // it was JSON
		if err := bad(alone); err == nil {
			continue
		}
		var named map[string]json.RawMessage
		var list []json.RawMessage
		switch here := at + "/" + token(word); word {
		case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies":
			if json.Unmarshal(value, &named) == nil {
				for _, name := range slices.Sorted(maps.Keys(named)) {
					if err := bad(named[name]); err != nil {
						return misread(named[name], here+"/"+token(name), err)
					}
				}
			}
			return fmt.Errorf("%s is %s, want an object of schemas", here, kindOf(value))
		case "allOf", "anyOf", "oneOf", "prefixItems", "items":
			if json.Unmarshal(value, &list) == nil {
				for i, one := range list {
					if err := bad(one); err != nil {
						return misread(one, here+"/"+strconv.Itoa(i), err)
					}
				}
			}
			if word == "items" {
				return misread(value, here, err)
			}
			return fmt.Errorf("%s is %s, want a list of schemas", here, kindOf(value))
		case "additionalItems", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties", "not", "if", "then", "else", "contentSchema":
			return misread(value, here, err)
		default:
			return fmt.Errorf("%s is %s, which it cannot be", here, kindOf(value))
		}
	}
	return fmt.Errorf("%s%w", place(at), err)
}

func place(at string) string {
	if at == "" {
		return ""
	}
	return at + ": "
}

// kindOf names the type of a JSON value, with its article.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "the text " + short(string(raw[1:len(raw)-1]))
	}
	return short(string(raw))
}

// short returns a word of a schema as it may be told: it came from outside.
func short(s string) string {
	if r := []rune(s); len(r) > 80 {
		s = string(r[:80]) + "…"
	}
	return strconv.Quote(s)
}

// token writes a name as a JSON pointer has it.
func token(name string) string {
	name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	if q := strconv.Quote(name); q != `"`+name+`"` || len(name) > 80 {
		return short(name)
	}
	return name
}

// Depth counts the levels of lists and objects in a JSON text.
func Depth(raw []byte) int {
	most, now := 0, 0
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}
