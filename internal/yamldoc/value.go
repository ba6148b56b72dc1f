package yamldoc

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A Map is a mapping in the order of the file. The zero value is empty.
type Map struct {
	Line   int
	Fields []Field
}

// A Field is one entry of a Map.
type Field struct {
	Key   string
	Line  int
	Value Value
}

// A Value is a string, bool, int64, float64, nil, []Value or *Map, with the
// line where it begins.
type Value struct {
	Line int
	Any  any
	Text string // a number or boolean as it is written; "" for all else
}

// Get returns the value of a key as it is written, and whether it is there.
func (m *Map) Get(key string) (Value, bool) {
	for _, f := range m.Fields {
		if f.Key == key {
			return f.Value, true
		}
	}
	return Value{}, false
}

// JSON writes the value as JSON with keys in the order of the file.
func (v Value) JSON() json.RawMessage {
	var b strings.Builder
	v.writeJSON(&b)
	return json.RawMessage(b.String())
}

func (v Value) writeJSON(b *strings.Builder) {
	switch x := v.Any.(type) {
	case *Map:
		b.WriteByte('{')
		for i, f := range x.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, f.Key)
			b.WriteByte(':')
			f.Value.writeJSON(b)
		}
		b.WriteByte('}')
	case []Value:
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b)
		}
		b.WriteByte(']')
	case string:
		writeJSONString(b, x)
	case int64:
		b.WriteString(strconv.FormatInt(x, 10))
	default: // nil, bool and finite float64 cannot fail
		raw, _ := json.Marshal(x)
		b.Write(raw)
	}
}

func writeJSONString(b *strings.Builder, s string) {
	raw, _ := json.Marshal(s) // a string cannot fail
	b.Write(raw)
}

// Kind says in words what a value is: "text", "a list" and so on.
func (v Value) Kind() string { return kindOf(v.Any) }

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case *Map:
		return "a map"
	case []Value:
		return "a list"
	case string:
		return "text"
	case bool:
		return "true or false"
	}
	return "a number"
}
