package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A format reads and edits one kind of document.
type format interface {
	// read returns the document as maps, lists and plain values. A document
	// without anything in it is an empty map.
	read(data []byte) (map[string]any, error)

	// lines returns the line of each entry of the table at a place.
	lines(data []byte, at []string) map[string]int

	// names returns the names in the table at a place, in order.
	names(data []byte, at []string) []string

	// edits says how to make the changes.
	edits(data []byte, changes []change) ([]edit, error)

	// raw returns an entry of the table as it is written, for [put].
	raw(data []byte, at []string, name string) string

	// hide finds the spans of values that may be secrets.
	hide(data []byte, secret func(name, value string) bool) []edit
}

// changed makes the changes and reads them back: everything else must be as it
// was, and in the tables only what was asked for may have changed.
func changed(f format, data []byte, changes []change) ([]byte, []edit, error) {
	before, err := f.read(data)
	if err != nil {
		return nil, nil, err
	}
	edits, err := f.edits(data, changes)
	if err != nil {
		return nil, nil, err
	}
	out := apply(data, edits)
	after, err := f.read(out)
	if err != nil {
		return nil, nil, fmt.Errorf("the changed document cannot be read back (%w)", err)
	}
	for _, c := range changes {
		if c.isList() {
			if err := checkList(before, after, c); err != nil {
				return nil, nil, err
			}
			continue
		}
		was, is := cutTable(before, c.at), cutTable(after, c.at)
		want := map[string]string{}
		for name, v := range was {
			if !c.drop[name] {
				want[name] = printed(v)
			}
		}
		for _, p := range c.put {
			want[p.name] = printed(is[p.name])
			if is[p.name] == nil {
				return nil, nil, fmt.Errorf("the entry %q did not arrive", p.name)
			}
			if p.raw != "" && printed(is[p.name]) != printed(p.plain) {
				return nil, nil, fmt.Errorf("the entry %q did not arrive as it was", p.name)
			}
		}
		got := map[string]string{}
		for name, v := range is {
			got[name] = printed(v)
		}
		if !maps.Equal(got, want) {
			return nil, nil, errors.New("the edit would change other servers")
		}
	}
	if printed(before) != printed(after) {
		return nil, nil, errors.New("the edit would change other settings")
	}
	return out, edits, nil
}

// printed is a text that two values share only if they are the same.
func printed(v any) string { return fmt.Sprintf("%#v", v) }

// cutTable takes the table at a place out of a document, with the tables on
// the way that have nothing else in them.
func cutTable(doc map[string]any, at []string) map[string]any {
	inner, ok := doc[at[0]].(map[string]any)
	if !ok {
		if doc[at[0]] == nil { // null is as good as nothing
			delete(doc, at[0])
		}
		return nil
	}
	out := inner
	if len(at) > 1 {
		out = cutTable(inner, at[1:])
	}
	if len(at) == 1 || len(inner) == 0 {
		delete(doc, at[0])
	}
	return out
}

// table finds the table at a place.
func table(doc map[string]any, at []string) (map[string]any, error) {
	for i, name := range at {
		v, ok := doc[name]
		if !ok || v == nil {
			return nil, nil
		}
		if doc, ok = v.(map[string]any); !ok {
			return nil, fmt.Errorf("%s is not a table of servers", strings.Join(at[:i+1], "."))
		}
	}
	return doc, nil
}

// jsonFormat is JSON as editors have it.
type jsonFormat struct{}

func (jsonFormat) read(data []byte) (map[string]any, error) {
	root, err := parseJSON(data)
	switch {
	case err != nil:
		return nil, err
	case root == nil:
		return map[string]any{}, nil
	case root.kind != object:
		return nil, &syntaxError{lineAt(data, root.start), "the document is not an object in braces"}
	}
	return root.plain().(map[string]any), nil
}

// at finds the object at a place, and how far the way to it exists.
func (jsonFormat) at(root *node, at []string) (n *node, depth int, err error) {
	n = root
	for i, name := range at {
		if n.kind != object {
			return nil, i, fmt.Errorf("%s is not an object in braces", strings.Join(at[:i], "."))
		}
		for _, m := range n.members {
			if m.name == name && n.twice() == name {
				return nil, i, fmt.Errorf("%s is there twice", strings.Join(at[:i+1], "."))
			}
		}
		next := n.get(name)
		if next == nil {
			return n, i, nil
		}
		if next.kind == null && i == len(at)-1 {
			return next, len(at), nil
		}
		n = next
	}
	if n.kind != object {
		return nil, len(at), fmt.Errorf("%s is not an object in braces", strings.Join(at, "."))
	}
	return n, len(at), nil
}

func (f jsonFormat) find(data []byte, at []string) *node {
	root, err := parseJSON(data)
	if err != nil || root == nil {
		return nil
	}
	n, depth, err := f.at(root, at)
	if err != nil || depth < len(at) || n.kind != object {
		return nil
	}
	return n
}

func (f jsonFormat) lines(data []byte, at []string) map[string]int {
	out := map[string]int{}
	if n := f.find(data, at); n != nil {
		for _, m := range n.members {
			out[m.name] = lineAt(data, m.start)
		}
	}
	return out
}

func (f jsonFormat) names(data []byte, at []string) []string {
	var out []string
	if n := f.find(data, at); n != nil {
		for _, m := range n.members {
			if !slices.Contains(out, m.name) {
				out = append(out, m.name)
			}
		}
	}
	return out
}

func (f jsonFormat) raw(data []byte, at []string, name string) string {
	if v := f.find(data, at).get(name); v != nil {
		return string(data[v.start:v.end])
	}
	return ""
}

func (f jsonFormat) edits(data []byte, changes []change) ([]edit, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	s := styleOf(data, root)
	if root == nil {
		return f.create(data, changes, s), nil
	}
	if root.kind != object {
		return nil, errors.New("the document is not an object in braces")
	}
	render := func(p put, indent string) string {
		var v any = p.value
		if p.raw != "" {
			v = verbatim(p.raw)
		}
		return quote(p.name) + colon(s) + renderJSON(v, indent, s)
	}
	var edits []edit
	for _, c := range changes {
		if c.isList() {
			more, err := listEdits(data, root, c)
			if err != nil {
				return nil, err
			}
			edits = append(edits, more...)
			continue
		}
		n, depth, err := f.at(root, c.at)
		switch {
		case err != nil:
			return nil, err
		case depth < len(c.at) && len(c.put) == 0:
		case depth < len(c.at):
			if n.kind != object {
				return nil, fmt.Errorf("%s is not an object in braces", strings.Join(c.at[:depth], "."))
			}
			outer := put{name: c.at[depth], value: nested(c.at[depth+1:], c.put)}
			edits = append(edits, editList(data, n, change{put: []put{outer}}, s, render)...)
		case n.kind == null:
			if len(c.put) > 0 {
				edits = append(edits, edit{n.start, n.end, renderJSON(nested(nil, c.put), leading(data, n.start), s)})
			}
		default:
			edits = append(edits, editList(data, n, c, s, render)...)
		}
	}
	return edits, nil
}

// create writes a document where there was none.
func (jsonFormat) create(data []byte, changes []change, s style) []edit {
	var doc pairs
	for _, c := range changes {
		if len(c.put) > 0 {
			doc = append(doc, pair{c.at[0], nested(c.at[1:], c.put)})
		}
	}
	if doc == nil {
		return nil
	}
	start := 0
	if bytes.HasPrefix(data, byteOrderMark) {
		start = len(byteOrderMark)
	}
	text := renderJSON(doc, "", s) + s.eol
	if len(bytes.TrimSpace(data[start:])) > 0 { // comments
		start = len(data)
		if !bytes.HasSuffix(data, []byte("\n")) {
			text = s.eol + text
		}
	}
	return []edit{{start, len(data), text}}
}

// nested builds the objects that lead to entries.
func nested(at []string, puts []put) pairs {
	if len(at) > 0 {
		return pairs{{at[0], nested(at[1:], puts)}}
	}
	out := pairs{}
	for _, p := range puts {
		if p.raw != "" {
			out = append(out, pair{p.name, verbatim(p.raw)})
		} else {
			out = append(out, pair{p.name, p.value})
		}
	}
	return out
}

func (jsonFormat) hide(data []byte, secret func(name, value string) bool) []edit {
	root, err := parseJSON(data)
	if err != nil || root == nil {
		return nil
	}
	return hideIn(root, "", secret)
}

// hideIn finds the texts below a value that may be secrets. An argument is
// judged by the one before it as well.
func hideIn(n *node, name string, secret func(name, value string) bool) []edit {
	var out []edit
	switch n.kind {
	case text:
		if secret(name, n.text) {
			out = append(out, edit{n.start, n.end, ""})
		}
	case object:
		for _, m := range n.members {
			out = append(out, hideIn(m.value, m.name, secret)...)
		}
	case array:
		for i, item := range n.items {
			key := name
			if i > 0 && n.items[i-1].kind == text && strings.HasPrefix(n.items[i-1].text, "-") {
				key = strings.TrimLeft(n.items[i-1].text, "-")
			}
			out = append(out, hideIn(item, key, secret)...)
		}
	}
	return out
}

// verbatim is JSON that is written as it is.
type verbatim string

func colon(s style) string {
	if s.eol == "" {
		return ":"
	}
	return ": "
}

func quote(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// renderJSON writes a value, its later lines at the given indentation. Short
// lists stay on one line.
func renderJSON(v any, indent string, s style) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case verbatim:
		return string(v)
	case []string:
		var all []string
		for _, item := range v {
			all = append(all, quote(item))
		}
		comma := ", "
		if s.eol == "" {
			comma = ","
		}
		return "[" + strings.Join(all, comma) + "]"
	case pairs:
		if len(v) == 0 {
			return "{}"
		}
		inner := indent + s.indent
		if s.eol == "" {
			inner, indent = "", ""
		}
		var all []string
		for _, p := range v {
			all = append(all, s.eol+inner+quote(p.name)+colon(s)+renderJSON(p.value, inner, s))
		}
		return "{" + strings.Join(all, ",") + s.eol + indent + "}"
	}
	return fmt.Sprint(v) // bool, int
}
