package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/jsonvalid"
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
	_, err := read(raw)
	return err
}

// Object reads a JSON object as [Unique] does, in one pass. Numbers are as they are
// written.
func Object(raw []byte) (map[string]any, error) {
	v, err := read(raw)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return m, nil
}

func read(raw []byte) (any, error) {
	switch {
	case len(raw) > mostArguments:
		return nil, fmt.Errorf("the arguments have %d bytes, more than %d", len(raw), mostArguments)
	case !utf8.Valid(raw):
		return nil, errors.New("the arguments are not UTF-8") // a decoder would put other characters in place
	case !jsonvalid.Valid(raw):
		var first json.RawMessage
		if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) == nil {
			return nil, errors.New("text after the arguments")
		}
		return nil, errors.New("the arguments are not JSON")
	}
	r := valueReader{data: raw}
	return r.value(0)
}

// A valueReader reads JSON text that is known to be valid.
type valueReader struct {
	data []byte
	at   int
}

// next returns the byte at which the next token begins.
func (r *valueReader) next() byte {
	for ; ; r.at++ {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
}

func (r *valueReader) value(depth int) (any, error) {
	if depth > deepest {
		return nil, fmt.Errorf("the arguments are nested more than %d deep", deepest)
	}
	switch r.next() {
	case '{':
		return r.object(depth)
	case '[':
		list := []any{}
		for r.at++; r.next() != ']'; {
			v, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		r.at++
		return list, nil
	case '"':
		return r.text()
	case 't':
		r.at += len("true")
		return true, nil
	case 'f':
		r.at += len("false")
		return false, nil
	case 'n':
		r.at += len("null")
		return nil, nil
	}
	from := r.at
	for r.at < len(r.data) && strings.IndexByte("+-.0123456789Ee", r.data[r.at]) >= 0 {
		r.at++
	}
	return json.Number(r.data[from:r.at]), nil
}

func (r *valueReader) object(depth int) (any, error) {
	object := map[string]any{}
	for r.at++; r.next() != '}'; {
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("duplicate argument %.40q", name)
		}
		if object[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	r.at++
	return object, nil
}

func (r *valueReader) text() (string, error) {
	from, plain := r.at, true
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			plain = false
			r.at++
		}
	}
	r.at++
	if plain {
		return string(r.data[from+1 : r.at-1]), nil
	}
	var out string
	err := json.Unmarshal(r.data[from:r.at], &out)
	return out, err
}
