package connect

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields reads an entry key by key, and remembers what was wrong and what was
// not asked for. Values are never repeated: they may be secrets.
type fields struct {
	m     map[string]any
	asked map[string]bool
	wrong []string // what has the wrong type, as sentences
	keys  []string // the keys that these are about
}

func fieldsOf(v any) (*fields, bool) {
	m, ok := v.(map[string]any)
	return &fields{m: m, asked: map[string]bool{}}, ok
}

func (f *fields) bad(key, want string) {
	f.wrong = append(f.wrong, fmt.Sprintf("%s must be %s", key, want))
	f.keys = append(f.keys, key)
}

// has reports whether a key is there and not null. It does not count as
// reading it.
func (f *fields) has(key string) bool { return f.m[key] != nil }

func (f *fields) take(key string) any {
	f.asked[key] = true
	return f.m[key]
}

func (f *fields) text(key string) string {
	switch v := f.take(key).(type) {
	case nil:
		return ""
	case string:
		return v
	}
	f.bad(key, "a text in quotes")
	return ""
}

func (f *fields) flag(key string) (value, there bool) {
	switch v := f.take(key).(type) {
	case nil:
		return false, false
	case bool:
		return v, true
	}
	f.bad(key, "true or false")
	return false, false
}

// texts reads a list of texts; numbers and truth values in it are taken as
// they are written, since people forget the quotes.
func (f *fields) texts(key string) []string {
	v := f.take(key)
	list, ok := v.([]any)
	if !ok {
		if v != nil {
			f.bad(key, "a list of texts")
		}
		return nil
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		s, ok := word(item)
		if !ok {
			f.bad(key, "a list of texts")
			return nil
		}
		out = append(out, s)
	}
	return out
}

// table reads names with texts.
func (f *fields) table(key string) map[string]string {
	v := f.take(key)
	m, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			f.bad(key, "names with texts")
		}
		return nil
	}
	out := make(map[string]string, len(m))
	for name, item := range m {
		if item == nil {
			continue // a variable that is taken away: as good as not named
		}
		s, ok := word(item)
		if !ok {
			f.bad(key, "names with texts")
			return nil
		}
		out[name] = s
	}
	return out
}

// word returns a plain value as a text.
func word(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case numeral:
		return string(v), true
	case bool, int64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// duration reads a number of the given unit, or a text such as "30s".
func (f *fields) duration(key string, unit time.Duration) time.Duration {
	v := f.take(key)
	if v == nil {
		return 0
	}
	s, ok := word(v)
	if n, err := strconv.ParseFloat(s, 64); ok && err == nil && n >= 0 && n*float64(unit) < float64(1<<62) {
		return time.Duration(n * float64(unit))
	}
	if d, err := time.ParseDuration(s); ok && err == nil && d >= 0 {
		return d
	}
	f.bad(key, "a number of "+map[time.Duration]string{time.Millisecond: "milliseconds", time.Second: "seconds"}[unit])
	return 0
}

func (f *fields) count(key string) int {
	v := f.take(key)
	if v == nil {
		return 0
	}
	s, _ := word(v)
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		f.bad(key, "a whole number")
		return 0
	}
	return n
}

// rest returns the keys that were not asked for.
func (f *fields) rest() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(f.m)) {
		if !f.asked[key] {
			out = append(out, key)
		}
	}
	return out
}

// what is all that is wrong, in one sentence; empty for nothing.
func (f *fields) what() string { return strings.Join(f.wrong, ", ") }
