package pin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/untrusted"
)

// A Difference is one thing about a tool that is not as it was accepted. Was
// and Now came from outside; [Difference.String] is fit for a terminal.
type Difference struct {
	Field string `json:"field"`         // "description", "input.properties.path", …
	Was   string `json:"was,omitempty"` // empty: it was not there
	Now   string `json:"now,omitempty"` // empty: it is gone
}

// String says it in one line. Nothing is cut.
func (d Difference) String() string { return d.line(16 << 20) }

func (d Difference) line(limit int) string {
	field, was, now := untrusted.Line(d.Field, limit), untrusted.Line(d.Was, limit), untrusted.Line(d.Now, limit)
	switch {
	case d.Was == "" && d.Now == "":
		return field
	case d.Was == "":
		return field + " added: " + now
	case d.Now == "":
		return field + " removed: " + was
	case was == now:
		// What differs does not show: blanks, or how it was written.
		return fmt.Sprintf("%s changed in invisible characters: now %s, was %s", field,
			untrusted.Line(spell(d.Now), limit), untrusted.Line(spell(d.Was), limit))
	}
	return fmt.Sprintf("%s changed: now %s, was %s", field, now, was)
}

// spell writes out every character that is not seen, also blanks in a row.
func spell(s string) string { return strings.ReplaceAll(strconv.QuoteToASCII(s), "  ", ` \x20`) }

// short joins differences into one line of a bounded length, which says how
// much is left out.
func short(list []Difference) string {
	const each, most, all = 100, 3, 240
	var parts []string
	for _, d := range list[:min(len(list), most)] {
		parts = append(parts, d.line(each))
	}
	if more := len(list) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return untrusted.Line(strings.Join(parts, "; "), all)
}

// differences says what is not the same in two listings of a name. pinned says
// that there was one before; old is nil where it is not kept.
func differences(pinned bool, old, now []Tool) []Difference {
	switch {
	case now == nil:
		return []Difference{{Field: "the definition is too large to keep, so the change cannot be shown"}}
	case pinned && old == nil:
		return append([]Difference{{Field: "the definition differs from the accepted one, which is not kept"}}, describe(now)...)
	case !pinned:
		return describe(now)
	}
	var out []Difference
	if len(old) != len(now) {
		out = append(out, Difference{"number of times listed", strconv.Itoa(len(old)), strconv.Itoa(len(now))})
	}
	for i := range min(len(old), len(now)) {
		out = append(out, compare(old[i], now[i])...)
	}
	for _, t := range now[min(len(old), len(now)):] {
		out = append(out, describe([]Tool{t})...)
	}
	if len(out) == 0 {
		out = append(out, Difference{Field: "a part that is not shown here"})
	}
	return out
}

// describe returns all of a tool that was not there before.
func describe(tools []Tool) []Difference {
	var out []Difference
	for _, t := range tools {
		out = append(out, compare(Tool{}, t)...)
	}
	return out
}

func compare(a, b Tool) []Difference {
	var out []Difference
	text := func(field, was, now string) {
		if was != now {
			out = append(out, Difference{field, was, now})
		}
	}
	text("name", a.Name, b.Name)
	text("title", a.Title, b.Title)
	text("description", a.Description, b.Description)
	out = append(out, compareJSON("input", a.Input, b.Input)...)
	out = append(out, compareJSON("output", a.Output, b.Output)...)
	out = append(out, compareJSON("annotations", a.Annotations, b.Annotations)...)
	return append(out, compareJSON("for clients", a.Extra, b.Extra)...)
}

func compareJSON(field string, was, now json.RawMessage) []Difference {
	if string(canonical(was)) == string(canonical(now)) {
		return nil
	}
	a, errA := decoded(was)
	b, errB := decoded(now)
	if errA != nil || errB != nil {
		return []Difference{{field, string(was), string(now)}}
	}
	out := walk(nil, field, a, b)
	if len(out) == 0 {
		out = append(out, Difference{field, string(was), string(now)})
	}
	return out
}

// walk goes down two values at once and tells what differs as low as it can.
func walk(out []Difference, path string, was, now any) []Difference {
	switch a := was.(type) {
	case map[string]any:
		if b, ok := now.(map[string]any); ok {
			keys := slices.Collect(maps.Keys(a))
			for key := range b {
				if _, both := a[key]; !both {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				was, had := a[key]
				now, has := b[key]
				below := path + "." + key
				switch {
				case !had:
					out = append(out, Difference{Field: below, Now: compact(now)})
				case !has:
					out = append(out, Difference{Field: below, Was: compact(was)})
				default:
					out = walk(out, below, was, now)
				}
			}
			return out
		}
	case []any:
		if b, ok := now.([]any); ok && len(a) == len(b) {
			for i := range a {
				out = walk(out, path+"["+strconv.Itoa(i)+"]", a[i], b[i])
			}
			return out
		}
	}
	if was, now := compact(was), compact(now); was != now {
		out = append(out, Difference{path, was, now})
	}
	return out
}

func compact(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(out)
}

// decoded returns a schema as values, numbers as they are written. One that two
// readers could understand in two ways has none.
func decoded(raw []byte) (v any, err error) {
	clean, err := capability.CanonicalJSON(raw)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(clean))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}
