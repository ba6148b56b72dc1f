package slash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/coldsort"
)

// A Signature says which arguments an action takes.
type Signature struct {
	Parameters []Parameter

	// Words means that the action takes a plain list of words, Parameters[0]:
	// every word is an argument, flags among them, in the order typed.
	Words bool

	// Open means that flags which are not declared are taken as well.
	Open bool
}

// A Parameter is one argument of an action.
type Parameter struct {
	Name        string
	Description string
	Required    bool

	// Types are the words of JSON Schema; none means a string. Items are
	// those of a list's items.
	Types, Items []string

	// Flag is how it is written before its value, "--limit" or "-n"; every
	// parameter is also known as "--name".
	Flag string

	// Positional parameters take words without a name, in their order.
	Positional bool

	// Rest is a positional parameter that takes all that is left of the line:
	// a text as it was typed, quotes and dashes and all, or a list word by
	// word, flags among them.
	Rest bool

	Choices []string
}

func (p *Parameter) is(word string) bool { return slices.Contains(p.Types, word) }

// bare reports whether the flag may stand without a value.
func (p *Parameter) bare() bool { return p.is("boolean") }

// flag returns the parameter's own way of being written.
func (p *Parameter) flag() string {
	if p.Flag != "" {
		return p.Flag
	}
	return "--" + p.Name
}

// property is what the reader wants of one property of a schema.
type property struct {
	Type        json.RawMessage `json:"type"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Items       struct {
		Type json.RawMessage `json:"type"`
	} `json:"items"`
	Flag     string `json:"x-ken-flag"`
	Position int    `json:"x-ken-position"`
	Rest     bool   `json:"x-ken-rest"`
}

// ReadSignature reads the input schema of an action. "x-ken-position" and
// "x-ken-flag" say where a value goes; where no property has either, all are
// positional in the order in which they are written. The one with "x-ken-rest"
// takes the rest of the line: those written before it, switches excepted, take a
// word each, and those after it must be named. Without it, a text that is the
// only parameter takes the rest, and so does a list of texts called "args" that
// is the last one.
func ReadSignature(schema json.RawMessage) (Signature, error) {
	var doc struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
		Additional json.RawMessage `json:"additionalProperties"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return Signature{}, badSchema(err)
	}
	sig := Signature{Open: string(bytes.TrimSpace(doc.Additional)) == "true"}
	positions, err := sig.readProperties(doc.Properties)
	if err != nil {
		return Signature{}, badSchema(err)
	}
	for i := range sig.Parameters {
		sig.Parameters[i].Required = slices.Contains(doc.Required, sig.Parameters[i].Name)
	}
	sig.place(positions)
	return sig, nil
}

func badSchema(err error) error {
	return &capability.Error{
		Kind: capability.Invalid, Op: "read schema of action", Err: err,
		Fix: "write a JSON Schema with type: object and properties",
	}
}

// readProperties keeps the order of the document, which a map would lose.
func (s *Signature) readProperties(raw json.RawMessage) (positions []int, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("properties is not an object")
	}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := tok.(string) // the decoder allows nothing else here
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return nil, err
		}
		if len(s.Parameters) == maxParameters {
			return nil, fmt.Errorf("more than %d properties", maxParameters)
		}
		if slices.ContainsFunc(s.Parameters, func(p Parameter) bool { return p.Name == name }) {
			return nil, fmt.Errorf("property %q is there twice", name)
		}
		var p property
		if err := json.Unmarshal(one, &p); err != nil {
			p = property{} // "true" is a schema too, and says nothing
		}
		s.Parameters = append(s.Parameters, Parameter{
			Name: name, Description: p.Description, Types: typesOf(p.Type), Items: typesOf(p.Items.Type),
			Flag: p.Flag, Rest: p.Rest, Choices: choicesOf(p.Enum),
		})
		positions = append(positions, p.Position)
	}
	return positions, nil
}

// place settles which parameters take words without a name, and puts those
// first, in their order.
func (s *Signature) place(positions []int) {
	placed := slices.ContainsFunc(positions, func(n int) bool { return n > 0 }) ||
		slices.ContainsFunc(s.Parameters, func(p Parameter) bool { return p.Flag != "" })
	rest := slices.IndexFunc(s.Parameters, func(p Parameter) bool { return p.Rest })
	order := map[string]int{}
	for i := range s.Parameters {
		p := &s.Parameters[i]
		p.Rest = i == rest && !placed // one of them, and positions are said for all or for none
		switch {
		case placed:
			p.Positional = positions[i] > 0
		case rest >= 0:
			p.Positional = i == rest || i < rest && !p.bare()
		default:
			p.Positional = true
		}
		order[p.Name] = positions[i]
		if !p.Positional {
			order[p.Name] = maxParameters + 1
		}
	}
	coldsort.Stable(s.Parameters, func(a, b Parameter) int { return order[a.Name] - order[b.Name] })
	if n := len(s.Parameters); n > 0 && !placed && rest < 0 {
		last := &s.Parameters[n-1]
		texts := last.Name == "args" && last.is("array") && (len(last.Items) == 0 || slices.Equal(last.Items, []string{"string"}))
		s.Words = texts && n == 1
		last.Rest = texts || n == 1 && slices.Equal(last.Types, []string{"string"}) && last.Choices == nil
	}
}

// rest returns the parameter that takes the rest of the line, nil where none does.
func (s *Signature) rest() *Parameter {
	for i := range s.Parameters {
		if p := &s.Parameters[i]; p.Rest {
			return p
		}
	}
	return nil
}

func typesOf(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		return many
	}
	return nil
}

// choicesOf keeps the choices that a word can stand for.
func choicesOf(enum []any) []string {
	var out []string
	for _, v := range enum {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case float64, bool:
			out = append(out, fmt.Sprint(v))
		}
	}
	return out
}

// named finds the parameter that a flag stands for: "--limit", its own way of
// being written, or the same with dashes for underscores.
func (s *Signature) named(flag string) *Parameter {
	for i := range s.Parameters {
		if p := &s.Parameters[i]; p.Flag == flag {
			return p
		}
	}
	name, ok := strings.CutPrefix(flag, "--")
	if !ok {
		return nil
	}
	if p := s.key(name); p != nil {
		return p
	}
	return s.key(strings.ReplaceAll(name, "-", "_"))
}

func (s *Signature) key(name string) *Parameter {
	for i := range s.Parameters {
		if p := &s.Parameters[i]; p.Name == name {
			return p
		}
	}
	return nil
}

// flags lists the flags as they are written.
func (s *Signature) flags() []string {
	out := make([]string, len(s.Parameters))
	for i := range s.Parameters {
		out[i] = s.Parameters[i].flag()
	}
	return out
}
