package graphql

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Introspection asks a server for its schema. Deprecated fields are left out.
const Introspection = `query IntrospectionQuery{__schema{queryType{name}mutationType{name}subscriptionType{name}types{kind name description ` +
	`fields{name description args{...I}type{...T}}inputFields{...I}enumValues{name description}possibleTypes{name}}}}` +
	`fragment I on __InputValue{name description type{...T}defaultValue}` +
	`fragment T on __Type{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name}}}}}}}}`

// A schema is all types of an API, by the names that introspection uses.
type schema struct {
	QueryType, MutationType, SubscriptionType *named
	Types                                     []*typeDef
}

type named struct{ Name string }

type typeDef struct {
	Kind, Name, Description string
	Fields                  []*fieldDef
	InputFields             []*inputDef
	EnumValues              []named
	PossibleTypes           []named
}

type fieldDef struct {
	Name, Description string
	Args              []*inputDef
	Type              *typeRef
	Deprecated        bool `json:"isDeprecated"`
}

type inputDef struct {
	Name, Description string
	Type              *typeRef
	DefaultValue      *string
}

// required reports whether a value must be given.
func (i *inputDef) required() bool { return i.Type.Kind == nonNull && i.DefaultValue == nil }

// A typeRef names a type, or wraps another reference in a list or a promise that
// it is not null.
type typeRef struct {
	Kind, Name string
	OfType     *typeRef
}

const (
	nonNull = "NON_NULL"
	list    = "LIST"
)

// String writes a reference as the query language does, as in [ID!]!.
func (r *typeRef) String() string {
	switch r.Kind {
	case nonNull:
		return r.OfType.String() + "!"
	case list:
		return "[" + r.OfType.String() + "]"
	}
	return r.Name
}

// base returns the name of the type inside all lists.
func (r *typeRef) base() string {
	for r.OfType != nil {
		r = r.OfType
	}
	return r.Name
}

const (
	maxName  = 200 // bytes of one name
	maxWraps = 16  // lists and promises around one type
)

// isName reports whether a text is a name of the query language.
func isName(s string) bool {
	for i := range len(s) {
		if !wordByte(s[i]) || i == 0 && s[i] <= '9' {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// usable reports whether a reference can be written into a query.
func (r *typeRef) usable() bool {
	for range maxWraps {
		switch {
		case r == nil:
			return false
		case r.Kind != nonNull && r.Kind != list:
			return r.OfType == nil && isName(r.Name)
		}
		r = r.OfType
	}
	return false
}

// parse reads a document: JSON, or the schema language.
func parse(data []byte) (*schema, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if !bytes.HasPrefix(data, []byte("{")) {
		return parseSDL(string(data))
	}
	type answer struct {
		Schema *schema `json:"__schema"`
	}
	var top struct {
		answer
		Data   *answer         `json:"data"`
		Errors json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, errors.New("the answer to introspection cannot be read: " + plain(err))
	}
	s := top.Schema
	if s == nil && top.Data != nil {
		s = top.Data.Schema
	}
	switch {
	case s == nil && len(top.Errors) > 0:
		return nil, errors.New("the server does not answer introspection: " + firstError(top.Errors))
	case s == nil:
		return nil, errors.New("the JSON has no __schema")
	}
	return s, nil
}

// plain returns the cause of a JSON error without the names of Go types.
func plain(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "the value of " + clip(wrong.Field, 100) + " is a " + wrong.Value + ", which it cannot be"
	}
	return clip(err.Error(), 200)
}

func firstError(raw json.RawMessage) string {
	var list []struct{ Message string }
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 && list[0].Message != "" {
		return clip(list[0].Message, 300)
	}
	return "it sent errors without a message"
}

// clip joins the lines of a text and cuts it, visibly, after so many characters.
func clip(s string, most int) string {
	cut := false
	if len(s) > 16*most {
		s, cut = s[:16*most], true
	}
	r := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " "))
	if len(r) > most {
		r, cut = r[:most], true
	}
	if cut {
		return string(r) + "…"
	}
	return string(r)
}

// clean removes what cannot be written into a query, and what is said twice.
// dropped counts it.
func (s *schema) clean() (dropped int) {
	seen := map[string]bool{}
	keep := s.Types[:0]
	for _, t := range s.Types {
		if t == nil || !isName(t.Name) || seen[t.Name] {
			dropped++
			continue
		}
		seen[t.Name] = true
		t.Fields = cleaned(t.Fields, &dropped, func(f *fieldDef) string {
			if f == nil || !f.Type.usable() {
				return ""
			}
			f.Args = cleaned(f.Args, &dropped, inputName)
			return f.Name
		})
		t.InputFields = cleaned(t.InputFields, &dropped, inputName)
		keep = append(keep, t)
	}
	s.Types = keep
	return dropped
}

func inputName(i *inputDef) string {
	if i == nil || !i.Type.usable() {
		return ""
	}
	return i.Name
}

// cleaned keeps what has a name that is a name and that nothing before it has.
func cleaned[T any](list []T, dropped *int, nameOf func(T) string) []T {
	seen := make(map[string]bool, len(list))
	out := list[:0]
	for _, item := range list {
		n := nameOf(item)
		if !isName(n) || seen[n] {
			*dropped++
			continue
		}
		seen[n] = true
		out = append(out, item)
	}
	return out
}
