// Package yamltable finds and changes the servers in YAML files of MCP clients,
// line by line, so that everything else stays as it is.
package yamltable

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"ken/internal/yamldoc"
)

// largest bounds the files that are read.
var largest = yamldoc.Limits{Bytes: 4 << 20, Keys: 100_000}

// A Table is the servers of a file: the entries below one key of the document.
// They are a map, or a list whose items have a name.
type Table struct {
	Key  string
	List bool
}

// An Entry is one server with the lines that it takes.
type Entry struct {
	Name       string
	Line       int // of its first line, from 1
	Start, End int // the bytes of its lines
	Value      any
}

// A Document is a file that was read.
type Document struct {
	data    []byte
	starts  []int // of each line, and the end
	root    *yamldoc.Map
	table   Table
	field   int // of the table in root; -1: there is none
	Entries []Entry
	block   error // why the table cannot be edited
}

// Parse reads a file.
func Parse(data []byte, t Table) (*Document, error) {
	root, err := yamldoc.Parse(data, largest)
	if err != nil {
		return nil, err
	}
	d := &Document{data: data, root: root, table: t, field: -1, starts: []int{0}}
	for i, c := range data {
		if c == '\n' {
			d.starts = append(d.starts, i+1)
		}
	}
	if d.starts[len(d.starts)-1] < len(data) {
		d.starts = append(d.starts, len(data))
	}
	for i, f := range root.Fields {
		if f.Key == t.Key {
			d.field = i
		}
	}
	if d.field >= 0 {
		d.block = d.find()
	}
	return d, nil
}

// Values returns the document as maps, lists and plain values. The table is a map
// in any case.
func (d *Document) Values() map[string]any {
	out := plain(yamldoc.Value{Any: d.root}).(map[string]any)
	if d.field < 0 {
		return out
	}
	if v := d.root.Fields[d.field].Value; v.Any != nil && !d.isTable(v) {
		out[d.table.Key] = string(v.JSON()) // a text, so that it is not taken for the table
		return out
	}
	table := map[string]any{}
	for _, e := range d.Entries {
		table[e.Name] = e.Value
	}
	out[d.table.Key] = table
	return out
}

func (d *Document) isTable(v yamldoc.Value) bool {
	if d.table.List {
		_, ok := v.Any.([]yamldoc.Value)
		return ok
	}
	_, ok := v.Any.(*yamldoc.Map)
	return ok
}

func plain(v yamldoc.Value) any {
	switch x := v.Any.(type) {
	case *yamldoc.Map:
		out := map[string]any{}
		for _, f := range x.Fields {
			out[f.Key] = plain(f.Value)
		}
		return out
	case []yamldoc.Value:
		out := []any{}
		for _, item := range x {
			out = append(out, plain(item))
		}
		return out
	}
	return v.Any
}

// find fills Entries. The error says why their lines cannot be told apart.
func (d *Document) find() error {
	f := d.root.Fields[d.field]
	if f.Value.Any != nil && !d.isTable(f.Value) {
		return fmt.Errorf("%s is %s, and not the servers", d.table.Key, f.Value.Kind())
	}
	names := map[string]bool{}
	add := func(name string, line int, v yamldoc.Value) {
		for name == "" || names[name] { // known by what is in it, which stays when others go
			sum := sha256.Sum256(v.JSON())
			name = strings.TrimSpace(fmt.Sprintf("%s (%x)", name, sum[:3]))
		}
		names[name] = true
		d.Entries = append(d.Entries, Entry{Name: name, Line: line, Value: plain(v)})
	}
	switch v := f.Value.Any.(type) {
	case *yamldoc.Map:
		for _, in := range v.Fields {
			if !d.table.List {
				add(in.Key, in.Line, in.Value)
			}
		}
	case []yamldoc.Value:
		for _, item := range v {
			name := ""
			if m, ok := item.Any.(*yamldoc.Map); ok {
				if got, _ := m.Get("name"); got.Any != nil {
					name = fmt.Sprint(got.Any)
				}
			}
			if d.table.List {
				add(name, item.Line, item)
			}
		}
	}
	last := f.Line
	for i := range d.Entries {
		e := &d.Entries[i]
		if d.table.List {
			e.Line = d.dash(e.Line, last)
		}
		if e.Line <= last {
			return errors.New(d.table.Key + " is written on one line; write each server on lines of its own")
		}
		last = e.Line
	}
	end := len(d.starts) // lines are counted from 1, so this is behind the last
	if d.field+1 < len(d.root.Fields) {
		end = d.root.Fields[d.field+1].Line
	}
	for i := range d.Entries {
		e := &d.Entries[i]
		stop := end
		if i+1 < len(d.Entries) {
			stop = d.Entries[i+1].Line
		}
		indent := indentOf(d.line(e.Line))
		for stop > e.Line+1 && outside(d.line(stop-1), indent) {
			stop--
		}
		e.Start, e.End = d.starts[e.Line-1], d.starts[stop-1]
	}
	return nil
}

// dash returns the line of the dash of an item: the item may begin below it.
func (d *Document) dash(line, after int) int {
	for at := line; at > after; at-- {
		if strings.HasPrefix(strings.TrimLeft(d.line(at), " "), "-") {
			return at
		}
	}
	return 0
}

// outside reports whether a line behind an entry is not of it: an empty one, a
// comment that stands as far left as the entry, or a mark of the document.
func outside(line string, indent int) bool {
	text := strings.TrimSpace(line)
	return text == "" || text == "..." || text[0] == '#' && indentOf(line) <= indent
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// line returns a line, counted from 1, without its end.
func (d *Document) line(n int) string {
	if n < 1 || n >= len(d.starts) {
		return ""
	}
	return strings.TrimRight(string(d.data[d.starts[n-1]:d.starts[n]]), "\r\n")
}

// Raw returns the lines of an entry.
func (d *Document) Raw(name string) string {
	for _, e := range d.Entries {
		if e.Name == name && d.block == nil {
			return string(d.data[e.Start:e.End])
		}
	}
	return ""
}

// An Edit replaces bytes of the file.
type Edit struct {
	Start, End int
	Text       string
}

// A Put is an entry that comes: lines as they were elsewhere, or the fields of a
// new one, which the first line of a list shows by its name.
type Put struct {
	Name   string
	Raw    string
	Fields []Field
}

// A Field is a key with a text, number, truth value, list of texts or fields.
type Field struct {
	Key   string
	Value any
}

// Edits drops entries and puts others in the place of the first that goes, or
// behind the last one.
func (d *Document) Edits(drop map[string]bool, puts []Put) ([]Edit, error) {
	if d.block != nil {
		return nil, d.block
	}
	w := writer{eol: "\n"}
	if i := bytes.IndexByte(d.data, '\n'); i > 0 && d.data[i-1] == '\r' {
		w.eol = "\r\n"
	}
	if d.field < 0 {
		if len(puts) == 0 {
			return nil, nil
		}
		w.line(0, keyText(d.table.Key)+":")
		w.puts(puts, 2, d.table.List)
		return []Edit{{len(d.data), len(d.data), d.newline(w.eol) + w.String()}}, nil
	}
	stays := 0
	for _, e := range d.Entries {
		if !drop[e.Name] {
			stays++
		}
	}
	key := d.root.Fields[d.field].Line
	if stays == 0 {
		return d.whole(key, puts, w)
	}
	indent := indentOf(d.line(d.Entries[0].Line))
	w.puts(puts, indent, d.table.List)
	var out []Edit
	text := w.String()
	for _, e := range d.Entries {
		if drop[e.Name] {
			out = append(out, Edit{e.Start, e.End, text})
			text = ""
		}
	}
	if text != "" {
		at := d.Entries[len(d.Entries)-1].End
		if at == len(d.data) {
			text = d.newline(w.eol) + text
		}
		out = append(out, Edit{at, at, text})
	}
	return out, nil
}

// newline is what ends the last line of the file before more follows.
func (d *Document) newline(eol string) string {
	if len(d.data) == 0 || d.data[len(d.data)-1] == '\n' || bytes.Equal(d.data, []byte("\ufeff")) {
		return ""
	}
	return eol
}

// whole rewrites a table that keeps none of its entries. What stands between them
// stays.
func (d *Document) whole(key int, puts []Put, w writer) ([]Edit, error) {
	line := d.line(key)
	name, rest, ok := cutKey(line)
	if !ok {
		return nil, fmt.Errorf("%s does not begin its line", d.table.Key)
	}
	value, comment := strings.TrimSpace(rest), ""
	if i := strings.Index(value, "#"); i == 0 || i > 0 && value[i-1] == ' ' {
		value, comment = strings.TrimSpace(value[:i]), " "+value[i:]
	}
	empty := map[bool]string{false: " {}", true: " []"}[d.table.List]
	switch strings.Join(strings.Fields(value), "") {
	case "", "{}", "[]", "null", "~":
	default:
		return nil, fmt.Errorf("%s is written on one line; write each server on lines of its own", d.table.Key)
	}
	head := name + ":"
	if len(puts) == 0 {
		head += empty
	}
	indent := 2
	if len(d.Entries) > 0 {
		indent = indentOf(d.line(d.Entries[0].Line))
	}
	w.puts(puts, indent, d.table.List)
	text := w.String()
	start, end := d.starts[key-1], d.starts[key]
	stop := end // without the end of the line
	for stop > start && (d.data[stop-1] == '\n' || d.data[stop-1] == '\r') {
		stop--
	}
	out := []Edit{}
	if changed := head + comment; changed != line {
		out = append(out, Edit{start, stop, changed})
	}
	if len(d.Entries) == 0 && text != "" {
		if end == len(d.data) {
			text = d.newline(w.eol) + text
		}
		return append(out, Edit{end, end, text}), nil
	}
	for _, e := range d.Entries {
		out = append(out, Edit{e.Start, e.End, text})
		text = ""
	}
	return out, nil
}

// cutKey splits the line of a key of the document.
func cutKey(line string) (key, rest string, ok bool) {
	if line == "" {
		return "", "", false
	}
	if q := line[0]; q == '"' || q == '\'' {
		i := strings.IndexByte(line[1:], q)
		if i < 0 || !strings.HasPrefix(line[i+2:], ":") {
			return "", "", false
		}
		return line[:i+2], line[i+3:], true
	}
	return strings.Cut(line, ":")
}
