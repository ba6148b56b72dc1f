package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A selection chooses parts of a JSON value by paths. A path is a JSON pointer,
// "/items/0/name", in which * stands for every member or item. A name that meets
// a list means that of every item, so "/items/name" is the name of each. What is
// chosen stays where it is; everything else is left out.
type selection struct {
	paths []string
	tree  *choice
}

type choice struct {
	all  bool
	next map[string]*choice
}

const mostPaths = 50

// readSelection reads one path or a list of them.
func readSelection(v any) (*selection, error) {
	var paths []string
	switch v := v.(type) {
	case string:
		for one := range strings.SplitSeq(v, ",") {
			paths = append(paths, strings.TrimSpace(one))
		}
	case []any:
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, errors.New("must be a list of paths, as in [\"/items/name\"]")
			}
			paths = append(paths, text)
		}
	default:
		return nil, errors.New("must be a list of paths, as in [\"/items/name\"]")
	}
	if len(paths) == 0 || len(paths) > mostPaths {
		return nil, fmt.Errorf("has %d paths; give 1 to %d", len(paths), mostPaths)
	}
	s := &selection{paths: paths, tree: &choice{}}
	for _, path := range paths {
		if path != "" && path[0] != '/' {
			return nil, fmt.Errorf("path %.60q does not begin with a slash, as in /items/name", path)
		}
		at := s.tree
		for _, token := range strings.Split(path, "/")[1:] {
			token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
			if at.next == nil {
				at.next = map[string]*choice{}
			}
			if at.next[token] == nil {
				at.next[token] = &choice{}
			}
			at = at.next[token]
		}
		at.all = true
	}
	return s, nil
}

func (s *selection) String() string { return strings.Join(s.paths, ", ") }

// of returns the chosen parts as text, an item of a list in each line, and whether
// there are any.
func (s *selection) of(body []byte) (text string, some bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", false, err
	}
	v, some = s.tree.of(v)
	if !some {
		return "", false, nil
	}
	var b strings.Builder
	lines(&b, v, 0)
	return b.String(), true, nil
}

func (c *choice) of(v any) (any, bool) {
	if c.all {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, next := range c.next {
			for _, key := range keysFor(v, name) {
				if part, ok := next.of(v[key]); ok {
					out[key] = part
				}
			}
		}
		return out, len(out) > 0
	case []any:
		return c.items(v)
	}
	return nil, false
}

func keysFor(v map[string]any, name string) []string {
	if _, ok := v[name]; ok {
		return []string{name}
	}
	if name == "*" {
		return slices.Collect(maps.Keys(v))
	}
	return nil
}

func (c *choice) items(v []any) (any, bool) {
	var out []any
	for i, item := range v {
		one := &choice{next: map[string]*choice{}}
		for name, next := range c.next {
			switch n, err := strconv.Atoi(name); {
			case name == "*" || err == nil && n == i:
				one.all = one.all || next.all
				maps.Copy(one.next, next.next)
			case err != nil:
				one.next[name] = next
			}
		}
		if part, ok := one.of(item); ok {
			out = append(out, part)
		}
	}
	return out, len(out) > 0
}

// lines writes a value with the members of the outer objects, and the items of
// lists, in lines of their own.
func lines(b *strings.Builder, v any, level int) {
	const deepest = 2
	indent := strings.Repeat(" ", level+1)
	switch v := v.(type) {
	case map[string]any:
		if level >= deepest || len(v) == 0 {
			break
		}
		b.WriteString("{")
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n" + indent + compact(key) + ": ")
			lines(b, v[key], level+1)
		}
		b.WriteString("\n" + indent[1:] + "}")
		return
	case []any:
		if level >= deepest+1 || len(v) == 0 {
			break
		}
		b.WriteString("[")
		for i, item := range v {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n" + indent + plainJSON(item))
		}
		b.WriteString("\n" + indent[1:] + "]")
		return
	}
	b.WriteString(plainJSON(v))
}

func plainJSON(v any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "null" // it came from JSON
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
