package jsonscan

import (
	"bytes"
	"fmt"
)

// maxDepth bounds the nesting of JSON from outside; schemas in the wild
// stay below 40. looseMaxDepth is encoding/json's own bound.
const (
	maxDepth      = 128
	looseMaxDepth = 10_000
)

// An Error says what is wrong with JSON text, and at which byte.
type Error struct {
	Code         string // of the problem it becomes
	Offset       int
	Message, Fix string
}

func (e *Error) Error() string { return e.Message }

// A Scanner goes over JSON text in place. It accepts what encoding/json
// accepts, except objects that name a key twice, because two readers would
// disagree about what they say, and nesting beyond maxDepth. Text is
// handed on as the bytes between the quotes; see [Unquote].
type Scanner struct {
	Data  []byte
	Pos   int
	depth int
	Loose bool     // accept all that encoding/json accepts
	keys  [][]byte // of the objects that are open, the innermost last
	Text  *[]byte  // where not nil, takes every text, keys too, one per line
}

// Reset starts over with another text. It keeps the memory of w.
func (w *Scanner) Reset(data []byte) { *w = Scanner{Data: data, keys: w.keys[:0]} }

// Fail returns an error about the place that w has reached.
func (w *Scanner) Fail(message, fix string) error {
	return &Error{Code: "bad-json", Offset: w.Pos, Message: message, Fix: fix}
}

// Check reads exactly one value with nothing but space around it.
func (w *Scanner) Check() error {
	if err := w.Value(); err != nil {
		return err
	}
	if w.Space(); w.Pos < len(w.Data) {
		return w.Fail("there is more text after the JSON value", "keep one value")
	}
	return nil
}

// Space passes over white space.
func (w *Scanner) Space() {
	for w.Pos < len(w.Data) {
		switch w.Data[w.Pos] {
		case ' ', '\t', '\r', '\n':
			w.Pos++
		default:
			return
		}
	}
}

// Next returns the byte at which the next token begins, or 0 at the end.
func (w *Scanner) Next() byte {
	w.Space()
	if w.Pos == len(w.Data) {
		return 0
	}
	return w.Data[w.Pos]
}

// Value passes over one value of any kind.
func (w *Scanner) Value() error {
	switch c := w.Next(); {
	case c == '{':
		return w.Object(nil)
	case c == '[':
		return w.Array(nil)
	case c == '"':
		_, err := w.RawString()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return w.number()
	case w.Pos == len(w.Data):
		return w.Fail("the JSON text ends too early", "complete it")
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(w.Data[w.Pos:], []byte(word)) {
			w.Pos += len(word)
			return nil
		}
	}
	return w.Fail("this is not JSON", "quote texts and keys with \"")
}

// Object passes over an object. f, where not nil, is called after each member
// with its key and the place of its value.
func (w *Scanner) Object(f func(key []byte, at, end int) error) error {
	return w.Members(func(key []byte) error {
		at := w.Pos
		if err := w.Value(); err != nil || f == nil {
			return err
		}
		return f(key, at, w.Pos)
	})
}

// Members goes through an object and leaves each value to read, which must
// pass over exactly that.
func (w *Scanner) Members(read func(key []byte) error) error {
	if err := w.enter('{'); err != nil {
		return err
	}
	first, members := len(w.keys), 0
	var known map[string]bool // of the keys, once they are many
	for more := w.Next() != '}'; more; more = w.Next() == ',' {
		if members > 0 {
			w.Pos++ // the comma
		}
		members++
		if w.Next() != '"' && w.Pos < len(w.Data) {
			return w.Fail("a key is missing here", "write keys as \"key\": and no comma before the closing brace")
		}
		if w.Pos == len(w.Data) {
			return w.Fail("the JSON text ends too early", "complete it")
		}
		start := w.Pos
		key, err := w.RawString()
		if err != nil {
			return err
		}
		if !w.Loose {
			var twice bool
			if known, twice = w.newKey(key, first, known); twice {
				w.Pos = start
				return w.Fail(fmt.Sprintf("key %s appears twice", Shorten(Unquote(key))), "keep one of them")
			}
		}
		if w.Next() != ':' {
			return w.Fail(fmt.Sprintf("no colon after key %s", Shorten(string(key))), "write \"key\": value")
		}
		w.Pos++
		w.Space()
		if err := read(key); err != nil {
			return err
		}
	}
	w.keys = w.keys[:first]
	return w.leave('}')
}

// Array passes over an array, calling f, where not nil, after each item.
func (w *Scanner) Array(f func(at, end int) error) error {
	return w.Items(func() error {
		at := w.Pos
		if err := w.Value(); err != nil || f == nil {
			return err
		}
		return f(at, w.Pos)
	})
}

// Items goes through an array and leaves each item to read.
func (w *Scanner) Items(read func() error) error {
	if err := w.enter('['); err != nil {
		return err
	}
	items := 0
	for more := w.Next() != ']'; more; more = w.Next() == ',' {
		if items > 0 {
			w.Pos++ // the comma
		}
		items++
		w.Space()
		if err := read(); err != nil {
			return err
		}
	}
	return w.leave(']')
}

func (w *Scanner) enter(open byte) error {
	if w.Next() != open {
		return w.Fail(fmt.Sprintf("no %c here", open), "")
	}
	most := maxDepth
	if w.Loose {
		most = looseMaxDepth
	}
	if w.depth++; w.depth > most {
		return w.Fail(fmt.Sprintf("nested deeper than %d levels", most), "flatten it")
	}
	w.Pos++
	return nil
}

func (w *Scanner) leave(end byte) error {
	switch w.Next() {
	case end:
		w.depth--
		w.Pos++
		return nil
	case 0:
		if w.Pos == len(w.Data) {
			return w.Fail("the JSON text ends too early", fmt.Sprintf("close it with %c", end))
		}
	}
	return w.Fail(fmt.Sprintf("want a comma or %c here", end), "check commas, quotes and brackets before this place")
}

// newKey remembers a key of the object whose keys begin at first and reports
// whether it is there already. Few keys are compared one by one, many by a map.
func (w *Scanner) newKey(key []byte, first int, known map[string]bool) (_ map[string]bool, twice bool) {
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

// RawString passes over a text and returns the bytes between its quotes.
func (w *Scanner) RawString() ([]byte, error) {
	d, i := w.Data, w.Pos+1
	for ; ; i++ {
		for i < len(d) && plainByte[d[i]] {
			i++
		}
		if i == len(d) {
			return nil, w.Fail("a text that begins here never ends", `close it with "`)
		}
		switch c := d[i]; {
		case c == '"':
			raw := d[w.Pos+1 : i]
			w.Pos = i + 1
			if w.Text != nil {
				*w.Text = append(appendUnquoted(*w.Text, raw), TextSeparator...)
			}
			return raw, nil
		case c == '\\':
			n := escapeLen(d[i:])
			if n == 0 {
				w.Pos = i
				return nil, w.Fail("a backslash that JSON does not know", `write \\ for a backslash`)
			}
			i += n - 1
		default:
			w.Pos = i
			return nil, w.Fail(fmt.Sprintf("a control character (0x%02x) inside a text", c), `write it as an escape such as \n`)
		}
	}
}

// plainByte holds the bytes of a text that stand for themselves.
var plainByte = func() (is [256]bool) {
	for b := ' '; b < 256; b++ {
		is[b] = b != '"' && b != '\\'
	}
	return is
}()

func (w *Scanner) number() error {
	d, i := w.Data, w.Pos
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
		return w.Fail("this is not a number", "write it as 12, -3.5 or 1e9")
	}
	w.Pos = i
	return nil
}
