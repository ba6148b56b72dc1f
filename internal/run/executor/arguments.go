package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
)

const (
	mostArguments = 16 << 20 // bytes
	deepest       = 64
)

// Decode reads a call's arguments into T, a struct whose fields have JSON
// names. It is strict, since what was decided on must be what is read: a key
// that is unknown, spelled in other letters, or there twice is an error.
func Decode[T any](call capability.Call) (T, error) {
	var out T
	raw := call.Arguments
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}")
	}
	keys, err := topKeys(raw)
	if err != nil {
		return out, BadArguments(call, err, "")
	}
	known := jsonNames(reflect.TypeFor[T]())
	for _, key := range keys {
		if !slices.Contains(known, key) {
			return out, BadArguments(call, fmt.Errorf("unknown argument %.40q", key), "the arguments are "+strings.Join(known, ", "))
		}
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("argument %s is %s, want %s", bad.Field, bad.Value, plainType(bad.Type))
		}
		return out, BadArguments(call, err, "")
	}
	return out, nil
}

// BadArguments is the error for arguments that make no sense. Neither cause
// nor fix may hold a value.
func BadArguments(call capability.Call, cause error, fix string) error {
	return &capability.Error{Kind: capability.Invalid, Op: "read the arguments of", Target: string(call.Target), Err: cause, Fix: fix}
}

// Outdated returns the error of a call that was decided on for a capability that is
// another now.
func Outdated(op string, call capability.Call) error {
	return &capability.Error{
		Kind: capability.Conflict, Op: op, Target: string(call.Target),
		Err: errors.New("changed since the decision"), Fix: "look at it again and repeat the call",
	}
}

func plainType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "a " + t.Kind().String()
}

func jsonNames(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

// topKeys returns the keys of a JSON object, and refuses what is not one or
// holds a key twice, at any depth.
func topKeys(raw []byte) ([]string, error) {
	if err := Unique(raw); err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// Unique reports what is wrong with a JSON value that has a key twice, is
// nested too deep, too large, or no single value. What a reader makes of such
// a value depends on the reader.
func Unique(raw []byte) error {
	if len(raw) > mostArguments {
		return fmt.Errorf("the arguments have %d bytes, more than %d", len(raw), mostArguments)
	}
	if !utf8.Valid(raw) {
		return errors.New("the arguments are not UTF-8") // a decoder would put other characters in place
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := unique(dec, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the arguments")
	}
	return nil
}

// Object reads a JSON object as [Unique] does, in one pass. Numbers are as they are
// written.
func Object(raw []byte) (map[string]any, error) {
	if len(raw) > mostArguments {
		return nil, fmt.Errorf("the arguments have %d bytes, more than %d", len(raw), mostArguments)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the arguments are not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := read(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the arguments")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return m, nil
}

func read(dec *json.Decoder, depth int) (any, error) {
	bad := errors.New("the arguments are not JSON")
	if depth > deepest {
		return nil, fmt.Errorf("the arguments are nested more than %d deep", deepest)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, bad
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	object, list := map[string]any{}, []any{}
	for dec.More() {
		name := ""
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return nil, bad
			}
			name, _ = key.(string) // the decoder allows nothing else here
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("duplicate argument %.40q", name)
			}
		}
		v, err := read(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if open == '{' {
			object[name] = v
		} else {
			list = append(list, v)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, bad
	}
	if open == '{' {
		return object, nil
	}
	return list, nil
}

func unique(dec *json.Decoder, depth int) error {
	if depth > deepest {
		return fmt.Errorf("the arguments are nested more than %d deep", deepest)
	}
	tok, err := dec.Token()
	if err != nil {
		return errors.New("the arguments are not JSON")
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return errors.New("the arguments are not JSON")
			}
			name, _ := key.(string) // the decoder allows nothing else here
			if seen[name] {
				return fmt.Errorf("duplicate argument %.40q", name)
			}
			seen[name] = true
		}
		if err := unique(dec, depth+1); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return errors.New("the arguments are not JSON")
	}
	return nil
}
