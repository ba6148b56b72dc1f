package wire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/untrusted"
)

// decode reads a body into v, which points to a struct: one JSON object, whose
// members v has under the very same names, each once. encoding/json would take
// TEXT for text, and of two the last; others in between may not. An empty body
// is {}, and a member that is null is as if it were not there.
func decode(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	plain, err := capability.CanonicalJSON(body)
	if err != nil {
		return unreadable(body, err)
	}
	f := fitting{raw: plain}
	if err := f.value("", reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return unwanted(wrongValue(err))
	}
	return nil
}

func unreadable(body []byte, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return unwanted("it ends before its JSON does")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	var first json.RawMessage
	if dec.Decode(&first) == nil && json.Valid(first) && dec.More() {
		return Bad("the body has more than one JSON value")
	}
	return unwanted(err.Error())
}

func unwanted(why string) error { return Bad("invalid body: " + why) }

// wrongValue says what encoding/json has against a value, without the types of
// this program.
func wrongValue(err error) string {
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s cannot be a %s", called(typed.Field), typed.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// A fitting holds canonical JSON against a type, in one pass and without
// copying: what is skipped is known to be well-formed.
type fitting struct {
	raw []byte
	at  int
}

// value checks the value that begins here. path names it: answers.color,
// pictures[1].
func (f *fitting) value(path string, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	begin := f.at
	if f.raw[f.at] == 'n' && path != "" {
		f.skip()
		return nil
	}
	want := wanted(t)
	if !want.takes(f.raw[f.at]) {
		return unwanted(called(path) + " is " + want.words)
	}
	switch {
	case want.members != nil && f.raw[f.at] == '{':
		return f.object(path, func(name string) (reflect.Type, error) {
			member, ok := want.members[name]
			if !ok {
				return nil, unknownMember(joined(path, name), want.names)
			}
			return member, nil
		})
	case want.each != nil && f.raw[f.at] == '{':
		return f.object(path, func(string) (reflect.Type, error) { return want.each, nil })
	case want.each != nil && f.raw[f.at] == '[':
		return f.list(path, want.each)
	}
	f.skip()
	if want.check != nil && !want.check(string(f.raw[begin:f.at])) {
		return unwanted(called(path) + " is " + want.words)
	}
	return nil
}

func (f *fitting) object(path string, typeOf func(name string) (reflect.Type, error)) error {
	for f.at++; f.raw[f.at] != '}'; {
		begin := f.at
		f.skip()
		var name string
		if err := json.Unmarshal(f.raw[begin:f.at], &name); err != nil {
			return unwanted(err.Error())
		}
		f.at++ // the colon
		t, err := typeOf(name)
		if err != nil {
			return err
		}
		if err := f.value(joined(path, name), t); err != nil {
			return err
		}
		if f.raw[f.at] == ',' {
			f.at++
		}
	}
	f.at++
	return nil
}

func (f *fitting) list(path string, each reflect.Type) error {
	f.at++
	for i := 0; f.raw[f.at] != ']'; i++ {
		if err := f.value(fmt.Sprintf("%s[%d]", path, i), each); err != nil {
			return err
		}
		if f.raw[f.at] == ',' {
			f.at++
		}
	}
	f.at++
	return nil
}

// skip passes one value: a text up to its quote, an object or a list up to its
// end, anything else up to what parts it from the next.
func (f *fitting) skip() {
	depth := 0
	for ; f.at < len(f.raw); f.at++ {
		switch f.raw[f.at] {
		case '"':
			f.text()
			if depth == 0 {
				return
			}
			f.at--
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return // of what is around it
			}
			if depth--; depth == 0 {
				f.at++
				return
			}
		case ',', ':':
			if depth == 0 {
				return
			}
		}
	}
}

// text passes a text with its quotes.
func (f *fitting) text() {
	for f.at++; f.raw[f.at] != '"'; f.at++ {
		if f.raw[f.at] == '\\' {
			f.at++
		}
	}
	f.at++
}

const mostPath = 200 // of the name of a value, which is the client's

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func called(path string) string {
	if path == "" {
		return "it"
	}
	return untrusted.Line(path, mostPath)
}

func unknownMember(path, names string) error {
	if names == "" {
		names = "none"
	}
	return unwanted(fmt.Sprintf("unknown field %q; there are %s", called(path), names))
}

// A wish is what a value must look like to become one of a type.
type wish struct {
	first   string                  // the bytes that it may begin with; empty: any
	words   string                  // what it may be, for people
	members map[string]reflect.Type // of an object; nil: it has no fixed ones
	names   string                  // of the members, for people
	each    reflect.Type            // of a list's or a map's values
	check   func(raw string) bool   // nil: it need not be looked at closer
}

func (w *wish) takes(first byte) bool { return w.first == "" || strings.IndexByte(w.first, first) >= 0 }

// wishes are kept: types are few, and looking at one costs more than a body.
var wishes sync.Map // reflect.Type → *wish

func wanted(t reflect.Type) *wish {
	if w, ok := wishes.Load(t); ok {
		return w.(*wish)
	}
	w := wishFor(t)
	wishes.Store(t, w)
	return w
}

const (
	aText   = `a text, as in "4"`
	aTime   = `a time, as in "2026-01-31T12:00:00Z"`
	numeric = "-0123456789"
)

func wishFor(t reflect.Type) *wish {
	pointer := reflect.PointerTo(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &wish{first: `"`, words: aTime, check: func(raw string) bool { return new(time.Time).UnmarshalJSON([]byte(raw)) == nil }}
	case t == reflect.TypeFor[json.Number]():
		return &wish{first: numeric, words: "a number, as in 4"}
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return &wish{} // it judges itself
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return &wish{first: `"`, words: aText}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &wish{first: "tf", words: "true or false"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &wish{first: numeric, words: "a whole number, as in 4", check: func(raw string) bool { _, err := strconv.ParseInt(raw, 10, t.Bits()); return err == nil }}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &wish{first: numeric, words: "a whole number of 0 or more, as in 4", check: func(raw string) bool { _, err := strconv.ParseUint(raw, 10, t.Bits()); return err == nil }}
	case reflect.Float32, reflect.Float64:
		return &wish{first: numeric, words: "a number, as in 0.5", check: func(raw string) bool { _, err := strconv.ParseFloat(raw, t.Bits()); return err == nil }}
	case reflect.String:
		return &wish{first: `"`, words: aText}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &wish{first: `"`, words: `a text in base64, as in "a2Vu"`}
		}
		return &wish{first: "[", words: "a list, as in [ … ]", each: t.Elem()}
	case reflect.Map:
		return &wish{first: "{", words: "an object, as in { … }", each: t.Elem()}
	case reflect.Struct:
		w := &wish{first: "{", words: "an object, as in { … }", members: map[string]reflect.Type{}}
		var names []string
		for _, f := range fieldsOf(t) {
			w.members[f.name] = f.t
			if f.quoted {
				w.members[f.name] = reflect.TypeFor[any]()
			}
			names = append(names, f.name)
		}
		w.names = strings.Join(names, ", ")
		return w
	}
	return &wish{} // anything
}
