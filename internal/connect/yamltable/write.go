package yamltable

import (
	"fmt"
	"strings"

	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// A writer writes entries as the clients do: one thing on each line.
type writer struct {
	strings.Builder
	eol string
}

func (w *writer) line(indent int, text string) {
	w.WriteString(strings.Repeat(" ", indent) + text + w.eol)
}

func (w *writer) puts(puts []Put, indent int, list bool) {
	for _, p := range puts {
		switch {
		case p.Raw != "":
			w.raw(p.Raw, indent)
		case list:
			w.line(indent, "- name: "+yamledit.Flow(p.Name))
			w.fields(p.Fields, indent+2)
		default:
			w.line(indent, keyText(p.Name)+":")
			w.fields(p.Fields, indent+2)
		}
	}
}

// raw writes lines as they were, as far in as the others.
func (w *writer) raw(text string, indent int) {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	had := indentOf(lines[0])
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			w.line(0, "")
			continue
		}
		w.line(indent, line[min(had, indentOf(line)):])
	}
}

func (w *writer) fields(list []Field, indent int) {
	for _, f := range list {
		key := keyText(f.Key) + ":"
		switch v := f.Value.(type) {
		case string:
			w.line(indent, key+" "+yamledit.Flow(v))
		case []string:
			if len(v) == 0 {
				w.line(indent, key+" []")
				continue
			}
			w.line(indent, key)
			for _, item := range v {
				w.line(indent+2, "- "+yamledit.Flow(item))
			}
		case []Field:
			if len(v) == 0 {
				w.line(indent, key+" {}")
				continue
			}
			w.line(indent, key)
			w.fields(v, indent+2)
		default: // bool, int
			w.line(indent, key+" "+fmt.Sprint(v))
		}
	}
}

// keyText writes a key: as a text, which may do for one.
func keyText(key string) string { return yamledit.Flow(key) }

// Hide returns the parts of the file that show values which may be secrets. They
// begin and end within lines or take whole lines, and do not overlap.
func (d *Document) Hide(secret func(name, value string) bool) []Edit {
	hidden := map[int]bool{}
	var walk func(v yamldoc.Value, name string)
	walk = func(v yamldoc.Value, name string) {
		switch x := v.Any.(type) {
		case *yamldoc.Map:
			for _, f := range x.Fields {
				walk(f.Value, f.Key)
			}
		case []yamldoc.Value:
			for i, item := range x {
				key := name
				if before, ok := previous(x, i); ok && strings.HasPrefix(before, "-") {
					key = strings.TrimLeft(before, "-")
				}
				walk(item, key)
			}
		case string:
			if secret(name, x) {
				d.hide(v.Line, x, hidden)
			}
		}
	}
	walk(yamldoc.Value{Any: d.root}, "")
	var out []Edit
	for n := 1; n < len(d.starts); n++ {
		if !hidden[n] {
			continue
		}
		line := d.line(n)
		from := indentOf(line)
		if i := strings.Index(line, ": "); i >= 0 {
			from = i + 2
		} else if strings.HasPrefix(line[from:], "- ") {
			from += 2
		}
		if from < len(line) {
			out = append(out, Edit{Start: d.starts[n-1] + from, End: d.starts[n-1] + len(line)})
		}
	}
	return out
}

func previous(list []yamldoc.Value, i int) (string, bool) {
	if i == 0 {
		return "", false
	}
	s, ok := list[i-1].Any.(string)
	return s, ok
}

// hide marks the lines of a value: its own, and those below it that are further in
// if the line has not all of it.
func (d *Document) hide(line int, value string, hidden map[int]bool) {
	for at := line; at >= 1; at-- { // a block begins below the line of its key
		hidden[at] = true
		if text := strings.TrimSpace(d.line(at)); strings.Contains(text, ": ") || strings.HasPrefix(text, "- ") || strings.HasSuffix(text, ":") {
			line = at
			break
		}
	}
	if strings.Contains(d.line(line), value) {
		return
	}
	indent := indentOf(d.line(line))
	for at := line + 1; at < len(d.starts); at++ {
		if text := d.line(at); strings.TrimSpace(text) != "" && indentOf(text) <= indent {
			return
		}
		hidden[at] = true
	}
}
