package yamldoc

import (
	"fmt"
	"strings"

	"ken/internal/spelling"
)

// A Reader takes known keys out of a Map. Every spelling of a key is the same
// key: sessionTypes, session_types and session-types. What has the wrong type
// is recorded as an issue and read as absent, so one bad value hides only
// itself until the caller decides otherwise.
//
// The zero Reader and a Reader of a nil Map read everything as absent.
type Reader struct {
	path   string // prefix for messages: "triggers."
	fields []Field
	used   []bool
	asked  []string
	issues *[]*Error
}

// NewReader makes a Reader over m.
func NewReader(m *Map) *Reader {
	r := &Reader{issues: new([]*Error)}
	if m != nil {
		r.fields = m.Fields
		r.used = make([]bool, len(m.Fields))
	}
	return r
}

// Field finds the first of the keys that is there, in any spelling, and marks
// every spelling of it as read. Two spellings of one key in one map are an
// issue; the first stands.
func (r *Reader) Field(keys ...string) (Field, bool) {
	var found Field
	var ok bool
	for _, key := range keys {
		r.asked = append(r.asked, key)
		for i, f := range r.fields {
			if spelling.Fold(f.Key) != spelling.Fold(key) {
				continue
			}
			again := r.used[i]
			r.used[i] = true
			if !ok {
				found, ok = f, true
			} else if spelling.Fold(found.Key) == spelling.Fold(f.Key) && !again {
				*r.issues = append(*r.issues, &Error{
					Line: f.Line, Message: fmt.Sprintf("%s%s repeats %s of line %d", r.path, f.Key, found.Key, found.Line),
					Fix: "keep one of them", Path: r.path, earlier: found.Line,
				})
			}
		}
	}
	if ok && found.Value.Any == nil {
		return found, false // "key:" with nothing after it is not given
	}
	return found, ok
}

// Issue records something wrong at a line.
func (r *Reader) Issue(line int, message, fix string) {
	*r.issues = append(*r.issues, &Error{Line: line, Message: message, Fix: fix, Path: r.path})
}

// Issues returns what was wrong so far, in this Reader and those made by [Reader.Map].
func (r *Reader) Issues() []*Error { return *r.issues }

func (r *Reader) mistyped(f Field, want string) {
	form := map[string]string{
		wantTexts: f.Key + ": [first, second]", wantWhole: f.Key + ": 5", wantNumber: f.Key + ": 0.5",
		wantBool: f.Key + ": true or " + f.Key + ": false", wantMap: f.Key + ": and below it, indented, key: value",
		wantMaps: f.Key + ": and below it entries that begin with a dash, each with key: value",
	}[want]
	if form == "" {
		form = f.Key + ": and one text"
	}
	r.Issue(f.Line, fmt.Sprintf("%s%s is %s, want %s", r.path, f.Key, kindOf(f.Value.Any), want), "write "+form)
}

// What a value may be wanted to be.
const (
	wantText   = "text"
	wantTexts  = "a list of texts"
	wantWhole  = "a whole number"
	wantNumber = "a number"
	wantBool   = "true or false"
	wantMap    = "a map"
	wantMaps   = "a list of maps"
)

// String reads text. Numbers and booleans are taken as they are written, since
// YAML makes them of plain words ("version: 1.0", "name: on").
func (r *Reader) String(keys ...string) string {
	f, ok := r.Field(keys...)
	if !ok {
		return ""
	}
	s, ok := scalarText(f.Value)
	if !ok {
		r.mistyped(f, wantText)
	}
	return s
}

func scalarText(v Value) (string, bool) {
	switch x := v.Any.(type) {
	case string:
		return x, true
	case bool, int64, float64:
		return v.Text, true
	}
	return "", false
}

// Strings reads a list of texts.
func (r *Reader) Strings(keys ...string) []string {
	f, ok := r.Field(keys...)
	if !ok {
		return nil
	}
	return r.list(f)
}

// Words reads a list of texts, or one text with commas between the words
// (without a comma: one word), as some formats write them.
func (r *Reader) Words(keys ...string) []string {
	f, ok := r.Field(keys...)
	if !ok {
		return nil
	}
	s, ok := f.Value.Any.(string)
	if !ok {
		return r.list(f)
	}
	var words []string
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

func (r *Reader) list(f Field) []string {
	items, ok := f.Value.Any.([]Value)
	if !ok {
		r.mistyped(f, wantTexts)
		return nil
	}
	var out []string
	for _, item := range items {
		s, ok := scalarText(item)
		if !ok {
			r.Issue(item.Line, fmt.Sprintf("an item of %s%s is %s, want text", r.path, f.Key, kindOf(item.Any)), "write it as one text")
			continue
		}
		out = append(out, s)
	}
	return out
}

// Int reads a whole number.
func (r *Reader) Int(keys ...string) (n int, ok bool) {
	f, ok := r.Field(keys...)
	if !ok {
		return 0, false
	}
	switch v := f.Value.Any.(type) {
	case int64:
		return int(v), true
	case float64:
		if v == float64(int(v)) {
			return int(v), true
		}
	}
	r.mistyped(f, wantWhole)
	return 0, false
}

// Float reads a number.
func (r *Reader) Float(keys ...string) (x float64, ok bool) {
	f, ok := r.Field(keys...)
	if !ok {
		return 0, false
	}
	switch v := f.Value.Any.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	r.mistyped(f, wantNumber)
	return 0, false
}

// Bool reads true or false.
func (r *Reader) Bool(keys ...string) (b, ok bool) {
	f, ok := r.Field(keys...)
	if !ok {
		return false, false
	}
	b, ok = f.Value.Any.(bool)
	if !ok {
		r.mistyped(f, wantBool)
	}
	return b, ok
}

// Map reads a nested mapping. Where there is none the result reads everything
// as absent.
func (r *Reader) Map(keys ...string) *Reader {
	f, ok := r.Field(keys...)
	sub := &Reader{path: r.path + strings.Join(keys[:1], "") + ".", issues: r.issues}
	if !ok {
		return sub
	}
	m, isMap := f.Value.Any.(*Map)
	if !isMap {
		r.mistyped(f, wantMap)
		return sub
	}
	sub.path = r.path + f.Key + "."
	sub.fields, sub.used = m.Fields, make([]bool, len(m.Fields))
	return sub
}

// Has reports whether a Reader made by Map found its mapping.
func (r *Reader) Has() bool { return r.used != nil }

// Items reads a list of mappings, one Reader each.
func (r *Reader) Items(keys ...string) []*Reader {
	f, ok := r.Field(keys...)
	if !ok {
		return nil
	}
	items, ok := f.Value.Any.([]Value)
	if !ok {
		r.mistyped(f, wantMaps)
		return nil
	}
	var out []*Reader
	for i, item := range items {
		m, ok := item.Any.(*Map)
		if !ok {
			r.Issue(item.Line, fmt.Sprintf("item %d of %s%s is %s, want a map", i+1, r.path, f.Key, kindOf(item.Any)), "write it as key: value")
			continue
		}
		out = append(out, &Reader{
			path: fmt.Sprintf("%s%s[%d].", r.path, f.Key, i), fields: m.Fields, used: make([]bool, len(m.Fields)), issues: r.issues,
		})
	}
	return out
}

// Line returns the line of a key that may be there, or of the map, or 0.
func (r *Reader) Line(key string) int {
	for _, f := range r.fields {
		if spelling.Fold(f.Key) == spelling.Fold(key) {
			return f.Line
		}
	}
	if len(r.fields) > 0 {
		return r.fields[0].Line
	}
	return 0
}

// Rest returns the fields that were not asked for.
func (r *Reader) Rest() []Field {
	var rest []Field
	for i, f := range r.fields {
		if !r.used[i] {
			rest = append(rest, f)
		}
	}
	return rest
}

// Suggest returns the key that was probably meant by an unknown one: the nearest
// of those that were asked for and are missing, or "". It knows only the keys
// that were asked for so far.
func (r *Reader) Suggest(key string) string {
	var free []string
	for _, k := range r.asked {
		if !r.has(k) {
			free = append(free, k)
		}
	}
	return spelling.Nearest(key, free)
}

func (r *Reader) has(key string) bool {
	for _, f := range r.fields {
		if spelling.Fold(f.Key) == spelling.Fold(key) {
			return true
		}
	}
	return false
}

// RefuseRest records every field that was not asked for as an issue that names
// the nearest key that was.
func (r *Reader) RefuseRest() {
	for _, f := range r.Rest() {
		fix := "remove it"
		if near := spelling.Nearest(f.Key, r.asked); near != "" {
			fix = "did you mean " + r.path + near + "?"
		} else if len(r.asked) > 0 {
			fix = "known keys here: " + strings.Join(distinct(r.asked), ", ")
		}
		r.Issue(f.Line, fmt.Sprintf("unknown key %s%s", r.path, f.Key), fix)
	}
}

func distinct(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
