package source

import (
	"bytes"
	"fmt"
)

// maxJSONDepth bounds the nesting of JSON from outside; schemas in the wild
// stay below 40. looseJSONDepth is encoding/json's own bound.
const (
	maxJSONDepth   = 128
	looseJSONDepth = 10_000
)

// A jsonError says what is wrong with JSON text, and at which byte.
type jsonError struct {
	code         string // of the problem it becomes
	offset       int
	message, fix string
}

func (e *jsonError) Error() string { return e.message }

// A jsonWalk goes over JSON text in place. It accepts what encoding/json
// accepts, except objects that name a key twice, because two readers would
// disagree about what they say, and nesting beyond maxJSONDepth. Text is
// handed on as the bytes between the quotes; see unquote.
type jsonWalk struct {
	data  []byte
	pos   int
	depth int
	loose bool     // accept all that encoding/json accepts
	keys  [][]byte // of the objects that are open, the innermost last
	text  *[]byte  // where not nil, takes every text, keys too, one per line
}

func (w *jsonWalk) fail(message, fix string) error {
	return &jsonError{code: "bad-json", offset: w.pos, message: message, fix: fix}
}

// check reads exactly one value with nothing but space around it.
func (w *jsonWalk) check() error {
	if err := w.value(); err != nil {
		return err
	}
	if w.space(); w.pos < len(w.data) {
		return w.fail("there is more text after the JSON value", "keep one value")
	}
	return nil
}

func (w *jsonWalk) space() {
	for w.pos < len(w.data) {
		switch w.data[w.pos] {
		case ' ', '\t', '\r', '\n':
			w.pos++
		default:
			return
		}
	}
}

// next returns the byte at which the next token begins, or 0 at the end.
func (w *jsonWalk) next() byte {
	w.space()
	if w.pos == len(w.data) {
		return 0
	}
	return w.data[w.pos]
}

// value passes over one value of any kind.
func (w *jsonWalk) value() error {
	switch c := w.next(); {
	case c == '{':
		return w.object(nil)
	case c == '[':
		return w.array(nil)
	case c == '"':
		_, err := w.str()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return w.number()
	case w.pos == len(w.data):
		return w.fail("the JSON text ends too early", "complete it")
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(w.data[w.pos:], []byte(word)) {
			w.pos += len(word)
			return nil
		}
	}
	return w.fail("this is not JSON", "quote texts and keys with \"")
}

// object passes over an object. f, where not nil, is called after each member
// with its key and the place of its value.
func (w *jsonWalk) object(f func(key []byte, at, end int) error) error {
	return w.members(func(key []byte) error {
		at := w.pos
		if err := w.value(); err != nil || f == nil {
			return err
		}
		return f(key, at, w.pos)
	})
}

// members goes through an object and leaves each value to read, which must
// pass over exactly that.
func (w *jsonWalk) members(read func(key []byte) error) error {
	if err := w.enter('{'); err != nil {
		return err
	}
	first, members := len(w.keys), 0
	var known map[string]bool // of the keys, once they are many
	for more := w.next() != '}'; more; more = w.next() == ',' {
		if members > 0 {
			w.pos++ // the comma
		}
		members++
		if w.next() != '"' && w.pos < len(w.data) {
			return w.fail("a key is missing here", "write keys as \"key\": and no comma before the closing brace")
		}
		if w.pos == len(w.data) {
			return w.fail("the JSON text ends too early", "complete it")
		}
		start := w.pos
		key, err := w.str()
		if err != nil {
			return err
		}
		if !w.loose {
			var twice bool
			if known, twice = w.newKey(key, first, known); twice {
				w.pos = start
				return w.fail(fmt.Sprintf("key %s appears twice", shorten(unquote(key))), "keep one of them")
			}
		}
		if w.next() != ':' {
			return w.fail(fmt.Sprintf("no colon after key %s", shorten(string(key))), "write \"key\": value")
		}
		w.pos++
		w.space()
		if err := read(key); err != nil {
			return err
		}
	}
	w.keys = w.keys[:first]
	return w.leave('}')
}

// array passes over an array, calling f, where not nil, after each item.
func (w *jsonWalk) array(f func(at, end int) error) error {
	return w.items(func() error {
		at := w.pos
		if err := w.value(); err != nil || f == nil {
			return err
		}
		return f(at, w.pos)
	})
}

// items goes through an array and leaves each item to read.
func (w *jsonWalk) items(read func() error) error {
	if err := w.enter('['); err != nil {
		return err
	}
	items := 0
	for more := w.next() != ']'; more; more = w.next() == ',' {
		if items > 0 {
			w.pos++ // the comma
		}
		items++
		w.space()
		if err := read(); err != nil {
			return err
		}
	}
	return w.leave(']')
}

func (w *jsonWalk) enter(open byte) error {
	if w.next() != open {
		return w.fail(fmt.Sprintf("no %c here", open), "")
	}
	most := maxJSONDepth
	if w.loose {
		most = looseJSONDepth
	}
	if w.depth++; w.depth > most {
		return w.fail(fmt.Sprintf("nested deeper than %d levels", most), "flatten it")
	}
	w.pos++
	return nil
}

func (w *jsonWalk) leave(end byte) error {
	switch w.next() {
	case end:
		w.depth--
		w.pos++
		return nil
	case 0:
		if w.pos == len(w.data) {
			return w.fail("the JSON text ends too early", fmt.Sprintf("close it with %c", end))
		}
	}
	return w.fail(fmt.Sprintf("want a comma or %c here", end), "check commas, quotes and brackets before this place")
}

// newKey remembers a key of the object whose keys begin at first and reports
// whether it is there already. Few keys are compared one by one, many by a map.
func (w *jsonWalk) newKey(key []byte, first int, known map[string]bool) (_ map[string]bool, twice bool) {
	const few = 12
	plain := key
	if bytes.IndexByte(key, '\\') >= 0 {
		plain = appendUnquoted(nil, key)
	}
	twice = known[string(plain)]
	if known == nil {
		for _, k := range w.keys[first:] {
			twice = twice || bytes.Equal(k, plain)
		}
	}
	w.keys = append(w.keys, plain)
	if known != nil {
		known[string(plain)] = true
	} else if len(w.keys)-first > few {
		known = make(map[string]bool, 4*few)
		for _, k := range w.keys[first:] {
			known[string(k)] = true
		}
	}
	return known, twice
}

// str passes over a text and gives the bytes between its quotes.
func (w *jsonWalk) str() ([]byte, error) {
	d, i := w.data, w.pos+1
	for ; i < len(d); i++ {
		switch c := d[i]; {
		case c == '"':
			raw := d[w.pos+1 : i]
			w.pos = i + 1
			if w.text != nil {
				*w.text = append(appendUnquoted(*w.text, raw), apart...)
			}
			return raw, nil
		case c == '\\':
			n := escapeLen(d[i:])
			if n == 0 {
				w.pos = i
				return nil, w.fail("a backslash that JSON does not know", `write \\ for a backslash`)
			}
			i += n - 1
		case c < ' ':
			w.pos = i
			return nil, w.fail(fmt.Sprintf("a control character (0x%02x) inside a text", c), `write it as an escape such as \n`)
		}
	}
	return nil, w.fail("a text that begins here never ends", `close it with "`)
}

func (w *jsonWalk) number() error {
	d, i := w.data, w.pos
	digits := func() bool {
		from := i
		for i < len(d) && '0' <= d[i] && d[i] <= '9' {
			i++
		}
		return i > from
	}
	if d[i] == '-' {
		i++
	}
	lead := i
	ok := digits() && (d[lead] != '0' || i == lead+1)
	if ok && i < len(d) && d[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(d) && (d[i] == 'e' || d[i] == 'E') {
		if i++; i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		ok = digits()
	}
	if !ok {
		return w.fail("this is not a number", "write it as 12, -3.5 or 1e9")
	}
	w.pos = i
	return nil
}
