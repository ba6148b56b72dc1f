package untrusted

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
)

// TwiceNamed returns the name of the first member that occurs twice in an
// object of data, because two decoders may use different ones. It returns false
// if every object names each member once. data must be valid JSON. With a depth
// above 0, only objects at most that deep are checked: 1 is only the outermost.
func TwiceNamed(data []byte, depth int) (name string, twice bool) {
	var open []object
	expectKey := false // the next text is the name of a member
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			expectKey = data[i] == '{'
			open = append(open, object{array: !expectKey})
		case '}', ']':
			open = open[:max(len(open)-1, 0)]
			expectKey = false
		case ',':
			expectKey = len(open) > 0 && !open[len(open)-1].array
		case '"':
			end := stringEnd(data, i)
			if expectKey && (depth <= 0 || len(open) <= depth) {
				if key := plainKey(data[i:end]); open[len(open)-1].add(key) {
					return string(key), true
				}
			}
			expectKey = false
			i = end - 1
		}
	}
	return "", false
}

// Members returns the names and values of the members of the outermost object of
// data, or none if it is no object. data must be valid JSON.
func Members(data []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		i := pastSpace(data, 0)
		if i == len(data) || data[i] != '{' {
			return
		}
		for i = pastSpace(data, i+1); i < len(data) && data[i] == '"'; i = pastSpace(data, i+1) {
			end := stringEnd(data, i)
			name := string(plainKey(data[i:end]))
			begin := pastSpace(data, pastSpace(data, end)+1)
			i = valueEnd(data, begin)
			if begin >= i || !yield(name, data[begin:i:i]) {
				return
			}
			i = pastSpace(data, i) // at the comma, or at the end of the object
		}
	}
}

// Items returns the items of the outermost array of data, or none if it is no array.
// data must be valid JSON.
func Items(data []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := pastSpace(data, 0)
		if i == len(data) || data[i] != '[' {
			return
		}
		for i = pastSpace(data, i+1); i < len(data) && data[i] != ']'; i = pastSpace(data, i+1) {
			begin := i
			i = valueEnd(data, begin)
			if begin >= i || !yield(data[begin:i:i]) {
				return
			}
			i = pastSpace(data, i) // at the comma, or at the end of the array
		}
	}
}

// pastSpace returns the place of the first byte from i on that is no white space.
func pastSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return min(i, len(data))
}

// valueEnd returns the place after the JSON value that begins at data[i].
func valueEnd(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i = stringEnd(data, i) - 1; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(data)
}

// An object holds the member names seen so far.
type object struct {
	array bool
	few   [][]byte
	many  map[string]bool // used if there are more than fewKeys
}

const fewKeys = 16

// add adds a name, and reports whether it was there already.
func (o *object) add(key []byte) bool {
	if o.many != nil {
		was := o.many[string(key)]
		o.many[string(key)] = true
		return was
	}
	if slices.ContainsFunc(o.few, func(k []byte) bool { return bytes.Equal(k, key) }) {
		return true
	}
	if o.few = append(o.few, key); len(o.few) > fewKeys {
		o.many = make(map[string]bool, 4*fewKeys)
		for _, k := range o.few {
			o.many[string(k)] = true
		}
	}
	return false
}

// stringEnd returns the place after the JSON string that begins at data[i].
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// plainKey returns the name that a JSON string encodes.
func plainKey(raw []byte) []byte {
	if len(raw) < 2 {
		return raw
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return raw
	}
	return []byte(s)
}
