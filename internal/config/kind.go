package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ken/internal/spelling"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// A kind is a type of value in ken.yaml: how it is read, written back, and
// compared.
type kind[T any] struct {
	text  bool // see setting
	empty bool // "key:" with nothing after it is a value too
	form  form // for editors; nil: like the default

	// parse reads a value, or reports what is wrong with it.
	parse func(r *reading, at spot, v yamldoc.Value) (T, bool)

	// show returns what flow writes and parse reads.
	show func(T) any

	// noWider reports whether a allows no more than b does. A project's file
	// may only go that way.
	noWider func(a, b T) bool

	// join, where set, puts what a project's file says to what there is;
	// otherwise the former replaces the latter.
	join func(old, now T) T
}

// fixed makes the kind one in which no value is narrower than another.
func (k kind[T]) fixed() kind[T] {
	show := k.show
	k.noWider = func(a, b T) bool { return yamledit.Flow(show(a)) == yamledit.Flow(show(b)) }
	return k
}

func noMore[T cmp.Ordered](a, b T) bool   { return a <= b }
func noLess[T cmp.Ordered](a, b T) bool   { return a >= b }
func identical[T comparable](a, b T) bool { return a == b } // to keep for less long is to delete
func anything[T any](T, T) bool           { return true }
func asIs[T any](x T) any                 { return x }

func boolean() kind[bool] {
	return kind[bool]{
		form: form{"type": "boolean"},
		parse: func(r *reading, at spot, v yamldoc.Value) (bool, bool) {
			b, ok := v.Any.(bool)
			if !ok {
				r.mistyped(at, v, "true or false")
			}
			return b, ok
		},
		show:    asIs[bool],
		noWider: func(a, b bool) bool { return !a || b },
	}
}

// notDecimal is a number that is not what it looks like: octal, or hexadecimal.
func notDecimal(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) > 1 && s[0] == '0' && wordByte(s[1])
}

func whole[T int | int64](least, most T) kind[T] {
	return kind[T]{
		form: form{"type": "integer", "minimum": least, "maximum": most},
		parse: func(r *reading, at spot, v yamldoc.Value) (T, bool) {
			x, ok := number(v)
			if !ok || x != math.Trunc(x) {
				r.mistyped(at, v, "a whole number")
				return 0, false
			}
			if notDecimal(v.Text) {
				r.fault(at, "wrong-type", "write it without the leading zero, in decimal", "%s is written %s, which YAML reads as %s", at.key, plain(v.Text), yamledit.Flow(v.Any))
				return 0, false
			}
			if x < float64(least) || x > float64(most) {
				r.fault(at, "out-of-range", "write a number in that range", "%s is %s, not within %d to %d", at.key, yamledit.Flow(v.Any), least, most)
				return 0, false
			}
			return T(x), true
		},
		show:    func(n T) any { return int64(n) },
		noWider: noMore[T],
	}
}

// wordByte reports whether c is an ASCII letter, a digit or an underscore.
func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// nameOf reports whether s is made of letters, digits, underscores and the other
// characters named. The first character is none of those others.
func nameOf(s, others string) bool {
	for i := range len(s) {
		if !wordByte(s[i]) && (i == 0 || strings.IndexByte(others, s[i]) < 0) {
			return false
		}
	}
	return s != ""
}

func number(v yamldoc.Value) (float64, bool) {
	switch n := v.Any.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func fraction(noWider func(a, b float64) bool) kind[float64] {
	return upTo(1, "write a number in that range", noWider)
}

// upTo is a number from zero to most.
func upTo(most float64, fix string, noWider func(a, b float64) bool) kind[float64] {
	return kind[float64]{
		form: form{"type": "number", "minimum": 0, "maximum": most},
		parse: func(r *reading, at spot, v yamldoc.Value) (float64, bool) {
			x, ok := number(v)
			if !ok {
				r.mistyped(at, v, "a number")
				return 0, false
			}
			if !(x >= 0 && x <= most) {
				r.fault(at, "out-of-range", fix, "%s is %s, not within 0 to %s", at.key, yamledit.Flow(v.Any), yamledit.Flow(most))
				return 0, false
			}
			return x, true
		},
		show:    asIs[float64],
		noWider: noWider,
	}
}

// optionalFraction has nil for "not said".
func optionalFraction() kind[*float64] {
	one := fraction(nil)
	return kind[*float64]{
		empty: true,
		form:  form{"type": []string{"number", "null"}, "minimum": 0, "maximum": 1},
		parse: func(r *reading, at spot, v yamldoc.Value) (*float64, bool) {
			if v.Any == nil {
				return nil, true
			}
			x, ok := one.parse(r, at, v)
			return &x, ok
		},
		show: func(x *float64) any {
			if x == nil {
				return nil
			}
			return *x
		},
		// One number for all cards may be above the threshold of some and
		// below that of others, so it compares with another number only.
		noWider: func(a, b *float64) bool {
			if a == nil || b == nil {
				return a == b
			}
			return *a >= *b
		},
	}
}

// word is one of a few words, the narrowest first.
func word[T ~string](words ...T) kind[T] {
	return kind[T]{
		text: true,
		form: form{"enum": toStrings(words)},
		parse: func(r *reading, at spot, v yamldoc.Value) (T, bool) {
			list := wordList(words)
			s, ok := v.Any.(string)
			if !ok {
				r.mistyped(at, v, list)
				return "", false
			}
			if !slices.Contains(words, T(s)) {
				fix := ""
				if near := spelling.Nearest(s, toStrings(words)); near != "" {
					fix = "did you mean " + near + "?"
				}
				r.fault(at, "unknown-word", fix, "%s must be %s, not %s", at.key, list, plain(s))
				return "", false
			}
			return T(s), true
		},
		show:    func(w T) any { return string(w) },
		noWider: func(a, b T) bool { return slices.Index(words, a) <= slices.Index(words, b) },
	}
}

func toStrings[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

func wordList[T ~string](words []T) string {
	list := toStrings(words)
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// text is printable text that check, where there is one, agrees with. It
// never narrows.
func text(check func(string) (fix string, err error)) kind[string] {
	return kind[string]{
		text: true,
		form: form{"type": "string"},
		parse: func(r *reading, at spot, v yamldoc.Value) (string, bool) {
			s, ok := r.printable(at, v)
			if !ok || check == nil {
				return s, ok
			}
			if fix, err := check(s); err != nil {
				r.fault(at, "bad-value", fix, "%s %s %v", at.key, plain(s), err)
				return "", false
			}
			return s, true
		},
		show:    asIs[string],
		noWider: func(a, b string) bool { return a == b },
	}
}

// path is a file. Relative ones count from the file that says it.
func path() kind[string] {
	k := text(nil)
	k.parse = func(r *reading, at spot, v yamldoc.Value) (string, bool) {
		s, ok := r.printable(at, v)
		if ok && s != "" {
			s = r.absolute(s)
		}
		return s, ok
	}
	return k
}

const longestText = 4096

// printable reads text without control or invisible characters.
func (r *reading) printable(at spot, v yamldoc.Value) (string, bool) {
	s, ok := v.Any.(string)
	if !ok && v.Text != "" {
		r.fault(at, "wrong-type", "put it in quotes", "%s must be text, not %s", at.key, kindWord(v.Any))
		return "", false
	}
	if !ok {
		r.mistyped(at, v, "text")
		return "", false
	}
	if len(s) > longestText {
		r.fault(at, "out-of-range", "shorten it", "%s has %d bytes, more than %d", at.key, len(s), longestText)
		return "", false
	}
	if i := strings.IndexFunc(s, unseen); i >= 0 {
		r.fault(at, "bad-value", "type it again", "%s holds a character that cannot be seen (%U)", at.key, []rune(s[i:])[0])
		return "", false
	}
	return s, true
}

// unseen is a character that has no place in a setting: control and format
// characters, and what stands for bytes that are not UTF-8.
func unseen(c rune) bool { return c == utf8.RuneError || !unicode.IsPrint(c) }

// texts is a list, of ids for example.
func texts(of string, noWider func(a, b []string) bool, join func(old, now []string) []string) kind[[]string] {
	return kind[[]string]{
		empty:   true,
		form:    listForm(form{"type": "string"}),
		noWider: noWider,
		join:    join,
		parse: func(r *reading, at spot, v yamldoc.Value) ([]string, bool) {
			items, ok := r.list(at, v, "a list of "+of+", as in [first, second]")
			var out []string
			for i, item := range items {
				where := spot{fmt.Sprintf("%s[%d]", at.key, i), item.Line}
				if id, fine := r.printable(where, item); !fine {
					ok = false
				} else if id == "" {
					r.fault(where, "no-value", "write one, or remove the item", "%s is empty", where.key)
					ok = false
				} else {
					out = append(out, id)
				}
			}
			return out, ok
		},
		show: showTexts,
	}
}

// ids is a list of ids or names of capabilities, in Unicode normalization form C,
// which is that of the catalog.
func ids(of string, noWider func(a, b []string) bool, join func(old, now []string) []string) kind[[]string] {
	k := texts(of, noWider, join)
	parse := k.parse
	k.parse = func(r *reading, at spot, v yamldoc.Value) ([]string, bool) {
		list, ok := parse(r, at, v)
		for i, s := range list {
			list[i] = norm.NFC.String(s)
		}
		return list, ok
	}
	return k
}

func showTexts(list []string) any {
	out := make([]yamldoc.Value, 0, len(list))
	for _, s := range list {
		out = append(out, yamldoc.Value{Any: s})
	}
	return out
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

func union(old, now []string) []string {
	out := slices.Clone(old)
	for _, s := range now {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (r *reading) list(at spot, v yamldoc.Value, want string) ([]yamldoc.Value, bool) {
	if v.Any == nil {
		return nil, true
	}
	items, ok := v.Any.([]yamldoc.Value)
	if !ok {
		r.mistyped(at, v, want)
	}
	return items, ok
}

// kindWord says what a value is, for messages.
func kindWord(v any) string {
	switch v := v.(type) {
	case nil:
		return "empty"
	case *yamldoc.Map:
		return "a map"
	case []yamldoc.Value:
		return "a list"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return "the text " + plain(v)
	}
	return "the number " + yamledit.Flow(v)
}

// named reads a map of names to maps, each with one: what is wrong with a name,
// or is no map, is told and passed over. of says what they are, and example how
// one is written.
func named(r *reading, at spot, v yamldoc.Value, of, example string, one func(where spot, name string, about *yamldoc.Map)) bool {
	if v.Any == nil {
		return true
	}
	m, ok := v.Any.(*yamldoc.Map)
	if !ok {
		r.mistyped(at, v, "a map of "+of+"s, as in {name: "+example+"}")
		return false
	}
	before := len(r.problems)
	for _, f := range m.Fields {
		where := spot{at.key + "." + plain(f.Key), f.Line}
		about, isMap := f.Value.Any.(*yamldoc.Map)
		switch {
		case !ServerName(f.Key):
			r.fault(where, "bad-value", "write up to 64 letters, digits, _, . and -", "%s is not the name of a %s", where.key, of)
		case !isMap:
			r.mistyped(where, f.Value, "a map, as in "+example)
		default:
			one(where, f.Key, about)
		}
	}
	return len(r.problems) == before
}
