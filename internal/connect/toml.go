package connect

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// tomlFormat is TOML. The library reads it; where things are is found by
// [scanTOML], and what both say is compared after each edit.
type tomlFormat struct{}

func (tomlFormat) read(data []byte) (map[string]any, error) {
	out := map[string]any{}
	if err := toml.Unmarshal(bytes.TrimPrefix(data, byteOrderMark), &out); err != nil {
		// The error of the library quotes the document.
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := at.Position()
			return nil, &syntaxError{line, "invalid TOML"}
		}
		return nil, errors.New("invalid TOML")
	}
	return out, nil
}

func (f tomlFormat) lines(data []byte, at []string) map[string]int {
	out := map[string]int{}
	for name, first := range f.entries(data, at) {
		out[name] = lineAt(data, first)
	}
	return out
}

func (f tomlFormat) names(data []byte, at []string) []string {
	first := f.entries(data, at)
	var out []string
	for name := range first {
		out = append(out, name)
	}
	slices.SortFunc(out, func(a, b string) int {
		if n := first[a] - first[b]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	return out
}

// entries returns where each entry of a table is first spoken of.
func (tomlFormat) entries(data []byte, at []string) map[string]int {
	out := map[string]int{}
	statements, err := scanTOML(data)
	if err != nil {
		return out
	}
	note := func(name string, at int) {
		if _, ok := out[name]; !ok {
			out[name] = at
		}
	}
	for _, st := range statements {
		switch {
		case under(st.path, at):
			note(st.path[len(at)], st.start)
		case slices.Equal(st.path, at) && st.value != nil && st.value.kind == object:
			for _, m := range st.value.members {
				note(m.name, m.start)
			}
		}
	}
	return out
}

// under reports whether a path leads into the table at a place.
func under(path, at []string) bool {
	return len(path) > len(at) && slices.Equal(path[:len(at)], at)
}

// A section is the lines of a header and of all that follows it.
type section struct {
	start, end int
	path       []string
}

// sections returns those of the headers that lead into a place, and the other
// statements that do.
func sections(statements []statement, at []string) (heads []section, loose []statement) {
	inside := false
	for _, st := range statements {
		switch {
		case st.header:
			inside = under(st.path, at)
			if inside {
				heads = append(heads, section{st.start, st.end, st.path})
			}
		case inside:
			heads[len(heads)-1].end = st.end
		case under(st.path, at) || slices.Equal(st.path, at):
			loose = append(loose, st)
		}
	}
	return heads, loose
}

func (tomlFormat) edits(data []byte, changes []change) ([]edit, error) {
	statements, err := scanTOML(data)
	if err != nil {
		return nil, err
	}
	s := style{eol: "\n"}
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		s.eol = "\r\n"
	}
	var edits []edit
	for _, c := range changes {
		heads, loose := sections(statements, c.at)
		placed := len(c.put) == 0
		for _, h := range heads {
			if !c.drop[h.path[len(c.at)]] {
				continue
			}
			e := edit{start: h.start, end: h.end}
			if placed {
				e.end = pastBlank(data, h.end)
			} else {
				e.text, placed = tomlSections(c, s), true
			}
			edits = append(edits, e)
		}
		for _, st := range loose {
			switch {
			case under(st.path, c.at):
				if c.drop[st.path[len(c.at)]] {
					edits = append(edits, edit{st.start, st.end, ""})
				}
			case st.value.kind == object:
				more, done := inline(data, st, c, placed)
				edits, placed = append(edits, more...), done
			default:
				return nil, fmt.Errorf("%s is not a table", strings.Join(c.at, "."))
			}
		}
		if !placed {
			edits = append(edits, edit{len(data), len(data), gap(data, s) + tomlSections(c, s)})
		}
	}
	return edits, nil
}

// inline changes a table that is written on one line. When nothing else is in
// it the whole statement goes, since no section can be added to such a table.
func inline(data []byte, st statement, c change, placed bool) ([]edit, bool) {
	stays := false
	for _, m := range st.value.members {
		stays = stays || !c.drop[m.name]
	}
	if !stays {
		if len(c.put) == 0 && len(st.value.members) == 0 {
			return nil, placed
		}
		return []edit{{st.start, st.end, ""}}, placed
	}
	if placed {
		c.put = nil
	}
	return editList(data, st.value, c, style{}, func(p put, _ string) string {
		if p.raw != "" {
			return tomlKey(p.name) + " = " + renderTOML(p.plain)
		}
		return tomlKey(p.name) + " = " + renderTOML(p.value)
	}), true
}

func pastBlank(data []byte, at int) int {
	for at < len(data) {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 || len(bytes.TrimSpace(data[at:at+end])) > 0 {
			return at
		}
		at += end + 1
	}
	return at
}

// gap is what stands between the end of a document and a new section.
func gap(data []byte, s style) string {
	switch body := bytes.TrimPrefix(data, byteOrderMark); {
	case len(bytes.TrimSpace(body)) == 0:
		return ""
	case !bytes.HasSuffix(data, []byte("\n")):
		return s.eol + s.eol
	}
	return s.eol
}

func tomlSections(c change, s style) string {
	var all []string
	for _, p := range c.put {
		if p.raw != "" {
			all = append(all, p.raw)
			continue
		}
		var b strings.Builder
		b.WriteString("[" + tomlPath(c.at, p.name) + "]" + s.eol)
		for _, kv := range p.value {
			b.WriteString(tomlKey(kv.name) + " = " + renderTOML(kv.value) + s.eol)
		}
		all = append(all, b.String())
	}
	return strings.Join(all, s.eol)
}

// raw returns the sections of an entry as they are written; what was written in
// another way becomes a section.
func (tomlFormat) raw(data []byte, at []string, name string) string {
	statements, err := scanTOML(data)
	if err != nil {
		return ""
	}
	eol := "\n"
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		eol = "\r\n"
	}
	heads, loose := sections(statements, at)
	var lines []string
	found := false
	line := func(path []string, v *node) {
		lines = append(lines, tomlPath(path)+" = "+string(data[v.start:v.end])+eol)
	}
	entry := func(path []string, v *node) {
		found = true
		if len(path) > 0 {
			line(path, v)
			return
		}
		for _, m := range v.members {
			line(m.path, m.value)
		}
	}
	for _, st := range loose {
		switch {
		case under(st.path, at) && st.path[len(at)] == name:
			entry(st.path[len(at)+1:], st.value)
		case slices.Equal(st.path, at) && st.value.kind == object:
			for _, m := range st.value.members {
				if m.name == name {
					entry(m.path[1:], m.value)
				}
			}
		}
	}
	var all []string
	if found {
		all = append(all, "["+tomlPath(at, name)+"]"+eol+strings.Join(lines, ""))
	}
	for _, h := range heads {
		if h.path[len(at)] == name {
			part := string(data[h.start:h.end])
			if !strings.HasSuffix(part, "\n") {
				part += eol
			}
			all = append(all, part)
		}
	}
	return strings.Join(all, eol)
}

func (tomlFormat) hide(data []byte, secret func(name, value string) bool) []edit {
	statements, err := scanTOML(data)
	if err != nil {
		return nil
	}
	var out []edit
	for _, st := range statements {
		if st.value != nil {
			out = append(out, hideIn(st.value, st.path[len(st.path)-1], secret)...)
		}
	}
	return out
}

// tomlPath writes a dotted key: the parts of a path, and more below it.
func tomlPath(path []string, more ...string) string {
	var keys []string
	for _, part := range slices.Concat(path, more) {
		keys = append(keys, tomlKey(part))
	}
	return strings.Join(keys, ".")
}

func tomlKey(name string) string {
	bare := name != ""
	for _, c := range []byte(name) {
		bare = bare && bareKey(c)
	}
	if bare {
		return name
	}
	return tomlString(name)
}

func bareKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// tomlString quotes a text. JSON's escapes are TOML's too, but for the one of
// a slash, which is not made here.
func tomlString(text string) string {
	return strings.ReplaceAll(quote(text), "\x7f", `\u007f`)
}

func renderTOML(v any) string {
	switch v := v.(type) {
	case string:
		return tomlString(v)
	case []string:
		var all []string
		for _, item := range v {
			all = append(all, tomlString(item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case pairs:
		var all []string
		for _, p := range v {
			all = append(all, tomlKey(p.name)+" = "+renderTOML(p.value))
		}
		if len(all) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(all, ", ") + " }"
	case map[string]any:
		var all pairs
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, pair{name, v[name]})
		}
		return renderTOML(all)
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, renderTOML(item))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case float64:
		if s := strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)); strings.ContainsAny(s, ".en") {
			return s // "nan", "+inf"
		}
		return strconv.FormatFloat(v, 'f', 1, 64)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}
