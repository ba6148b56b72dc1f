package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A pair is a name and a value on the wire, both encoded.
type pair struct{ name, value string }

// An encoder escapes a text for where it goes.
type encoder func(string) string

const hex = "0123456789ABCDEF"

// escaped encodes every byte that is not unreserved in a URL or in keep.
func escaped(s, keep string) string {
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 || strings.IndexByte(keep, c) >= 0
	}
	n := 0
	for i := range len(s) {
		if !plain(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	out := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if c := s[i]; plain(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

func escape(s string) string { return escaped(s, "") }

// reserved leaves the reserved characters that have no meaning in a query.
func reserved(s string) string { return escaped(s, ":/?@!$'()*,;") }

func asIs(s string) string { return s }

// encoder returns the one for a field in a URL.
func (f field) encoder() encoder {
	if f.reserved {
		return reserved
	}
	return escape
}

// scalar writes one value as text; a list or an object as JSON.
func scalar(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	raw, _ := json.Marshal(v) // it came from JSON
	return string(raw)
}

// list writes items with a separator between them.
func list(items []any, separator string, enc encoder) string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = enc(scalar(item))
	}
	return strings.Join(out, separator)
}

// members writes an object as key, between, value and so on.
func members(m map[string]any, between, separator string, enc encoder) string {
	out := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, enc(key)+between+enc(scalar(m[key])))
	}
	return strings.Join(out, separator)
}

// path writes a value into a path: in the style simple, label or matrix.
func (f field) path(v any, enc encoder) (string, error) {
	if f.json {
		return enc(compact(v)), nil
	}
	prefix, separator := "", ","
	switch f.style {
	case "simple":
	case "label":
		prefix = "."
		if f.explode {
			separator = "."
		}
	case "matrix":
		return f.matrix(v, enc), nil
	default:
		return "", fmt.Errorf("style %.40q is not valid in a path", f.style)
	}
	switch v := v.(type) {
	case []any:
		return prefix + list(v, separator, enc), nil
	case map[string]any:
		if f.explode {
			return prefix + members(v, "=", separator, enc), nil
		}
		return prefix + members(v, ",", separator, enc), nil
	}
	return prefix + enc(scalar(v)), nil
}

func (f field) matrix(v any, enc encoder) string {
	name := ";" + enc(f.wire)
	switch v := v.(type) {
	case []any:
		if f.explode {
			var b strings.Builder
			for _, item := range v {
				b.WriteString(name + "=" + enc(scalar(item)))
			}
			return b.String()
		}
		return name + "=" + list(v, ",", enc)
	case map[string]any:
		if f.explode {
			return ";" + members(v, "=", ";", enc)
		}
		return name + "=" + members(v, ",", ",", enc)
	}
	return name + "=" + enc(scalar(v))
}

// header writes a value into a header: the style simple, and nothing is escaped.
func (f field) header(v any) string {
	if f.json {
		return compact(v)
	}
	switch v := v.(type) {
	case []any:
		return list(v, ",", asIs)
	case map[string]any:
		if f.explode {
			return members(v, "=", ",", asIs)
		}
		return members(v, ",", ",", asIs)
	}
	return scalar(v)
}

// query writes a value into a query or a form.
func (f field) query(v any, name string, enc encoder) ([]pair, error) {
	if f.json {
		return []pair{{escape(name), enc(compact(v))}}, nil
	}
	between := ","
	switch f.style {
	case "form":
	case "spaceDelimited":
		between = "%20"
	case "pipeDelimited":
		between = "%7C"
	case "deepObject":
		if m, ok := v.(map[string]any); ok {
			return deep(nil, escape(name), m, enc), nil
		}
		return f.formed(v, name, ",", enc), nil
	default:
		return nil, fmt.Errorf("style %.40q is not valid in a query", f.style)
	}
	return f.formed(v, name, between, enc), nil
}

func (f field) formed(v any, name, between string, enc encoder) []pair {
	name = escape(name)
	switch v := v.(type) {
	case []any:
		if !f.explode {
			if len(v) == 0 {
				return nil
			}
			return []pair{{name, list(v, between, enc)}}
		}
		out := make([]pair, len(v))
		for i, item := range v {
			out[i] = pair{name, enc(scalar(item))}
		}
		return out
	case map[string]any:
		if !f.explode {
			return []pair{{name, members(v, between, between, enc)}}
		}
		var out []pair
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, pair{escape(key), enc(scalar(v[key]))})
		}
		return out
	}
	return []pair{{name, enc(scalar(v))}}
}

// deep writes name[key]=value, at any depth.
func deep(out []pair, name string, v any, enc encoder) []pair {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = deep(out, name+"%5B"+escape(key)+"%5D", v[key], enc)
		}
		return out
	case []any:
		for i, item := range v {
			out = deep(out, fmt.Sprintf("%s%%5B%d%%5D", name, i), item, enc)
		}
		return out
	}
	return append(out, pair{name, enc(scalar(v))})
}

func joined(pairs []pair) string {
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	return b.String()
}

func compact(v any) string {
	raw, _ := json.Marshal(v) // it came from JSON
	return string(raw)
}
