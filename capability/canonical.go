package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// CanonicalJSON returns a JSON value without its spelling: keys sorted, no space,
// numbers as they are written. An object that names a key twice, something after
// the value, and what is nested deeper than 200 levels are errors.
func CanonicalJSON(raw []byte) ([]byte, error) { return canonical(nil, raw) }

// canonical appends raw to buf, rewritten so that spelling no longer matters:
// keys sorted, no space, numbers as they were written. It is what
// [json.Marshal] makes of what decodeUnique reads.
func canonical(buf, raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	quick := rewriter{raw: raw, out: buf}
	if quick.value(0) && quick.ended() {
		return quick.out, nil
	}
	// An escape that is rarely used, or something wrong: then the words of the
	// error are to be found as well.
	v, err := decodeUnique(raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// A rewriter makes canonical JSON in one pass over text that needs no
// decoding. Its methods report false where they will not answer; what they do
// accept is JSON in which no object names a key twice.
type rewriter struct {
	raw     []byte
	at      int // in raw
	out     []byte
	members []member // of the objects that are open
	turned  []byte   // for objects whose keys were not in order
}

// A member is one key of an object with its value, as it stands in out.
type member struct {
	key      []byte
	from, to int
}

// next skips space and returns the byte after it, 0 at the end.
func (w *rewriter) next() byte {
	for ; w.at < len(w.raw); w.at++ {
		switch c := w.raw[w.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (w *rewriter) ended() bool { w.next(); return w.at == len(w.raw) }

func (w *rewriter) value(depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch w.next() {
	case '{':
		return w.object(depth)
	case '[':
		return w.list(depth)
	case '"':
		_, ok := w.text(false)
		return ok
	case 't':
		return w.word("true")
	case 'f':
		return w.word("false")
	case 'n':
		return w.word("null")
	}
	return w.number()
}

func (w *rewriter) word(s string) bool {
	if !bytes.HasPrefix(w.raw[w.at:], []byte(s)) {
		return false
	}
	w.at += len(s)
	w.out = append(w.out, s...)
	return true
}

func (w *rewriter) list(depth int) bool {
	w.at++
	w.out = append(w.out, '[')
	if w.next() == ']' {
		w.at++
		w.out = append(w.out, ']')
		return true
	}
	for w.value(depth + 1) {
		switch w.next() {
		case ',':
			w.at++
			w.out = append(w.out, ',')
		case ']':
			w.at++
			w.out = append(w.out, ']')
			return true
		default:
			return false
		}
	}
	return false
}

func (w *rewriter) object(depth int) bool {
	w.at++
	w.out = append(w.out, '{')
	first := len(w.members)
	defer func() { w.members = w.members[:first] }()
	if w.next() == '}' {
		w.at++
		w.out = append(w.out, '}')
		return true
	}
	for {
		from := len(w.out)
		if w.next() != '"' {
			return false
		}
		key, ok := w.text(true)
		if !ok || w.next() != ':' {
			return false
		}
		w.at++
		w.out = append(w.out, ':')
		if !w.value(depth + 1) {
			return false
		}
		w.members = append(w.members, member{key, from, len(w.out)})
		switch w.next() {
		case ',':
			w.at++
			w.out = append(w.out, ',')
		case '}':
			w.at++
			if !w.sort(w.members[first:]) {
				return false
			}
			w.out = append(w.out, '}')
			return true
		default:
			return false
		}
	}
}

// sort puts the members at the end of out into the order of their keys.
func (w *rewriter) sort(members []member) bool {
	byKey := func(a, b member) int { return bytes.Compare(a.key, b.key) }
	if slices.IsSortedFunc(members, byKey) {
		return unique(members)
	}
	start := members[0].from
	slices.SortFunc(members, byKey)
	w.turned = append(w.turned[:0], w.out[start:]...)
	w.out = w.out[:start]
	for i, m := range members {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, w.turned[m.from-start:m.to-start]...)
	}
	return unique(members)
}

func unique(sorted []member) bool {
	for i := 1; i < len(sorted); i++ {
		if bytes.Equal(sorted[i-1].key, sorted[i].key) {
			return false
		}
	}
	return true
}

// text copies a string, and returns what is between its quotes. Escapes that
// [json.Marshal] would write in the same way are allowed where the text is no
// key.
func (w *rewriter) text(key bool) ([]byte, bool) {
	w.out = append(w.out, '"')
	w.at++
	begin, done := w.at, w.at // what is before done is in out
	for w.at < len(w.raw) {
		switch c := w.raw[w.at]; {
		case c == '"':
			w.out = append(append(w.out, w.raw[done:w.at]...), '"')
			w.at++
			return w.raw[begin : w.at-1], true
		case c < ' ':
			return nil, false
		case c == '\\':
			if key || w.at+1 >= len(w.raw) {
				return nil, false
			}
			switch w.raw[w.at+1] {
			case 'n', 't', 'r', '"', '\\':
			default:
				return nil, false
			}
			w.at += 2
		case c == '<' || c == '>' || c == '&':
			const hex = "0123456789abcdef"
			w.out = append(append(w.out, w.raw[done:w.at]...), '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			w.at++
			done = w.at
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(w.raw[w.at:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
				return nil, false
			}
			w.at += size
		default:
			w.at++
		}
	}
	return nil, false
}

// number copies a number as it is written.
func (w *rewriter) number() bool {
	from := w.at
	w.skip("-", 1)
	switch {
	case w.skip("0", 1) == 1:
	case w.digits() == 0:
		return false
	}
	if w.skip(".", 1) == 1 && w.digits() == 0 {
		return false
	}
	if w.skip("eE", 1) == 1 {
		w.skip("+-", 1)
		if w.digits() == 0 {
			return false
		}
	}
	w.out = append(w.out, w.raw[from:w.at]...)
	return true
}

func (w *rewriter) digits() int { return w.skip("0123456789", len(w.raw)) }

// skip passes up to most bytes that are in set, and says how many.
func (w *rewriter) skip(set string, most int) (n int) {
	for n < most && w.at < len(w.raw) && strings.IndexByte(set, w.raw[w.at]) >= 0 {
		w.at++
		n++
	}
	return n
}

// decodeUnique decodes JSON and refuses an object that names a key twice,
// because two readers would disagree about what it says.
func decodeUnique(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON value; send exactly one")
	}
	return v, nil
}

const maxDepth = 200

func decodeValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		return decodeObject(dec, depth)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := decodeValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return tok, nil
}

func decodeObject(dec *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key := tok.(string) // the decoder allows nothing else here
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("key %q appears twice; name it once", key)
		}
		v, err := decodeValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		object[key] = v
	}
	_, err := dec.Token()
	return object, err
}
