package connect

import (
	"bytes"
	"fmt"
)

// A nodeKind is the kind of a value in a document.
type nodeKind byte

const (
	object nodeKind = iota + 1
	array
	text
	number
	boolean
	null
	other // what only TOML has: dates and the like
)

// A node is a value of a document, and where its bytes are.
type node struct {
	kind       nodeKind
	start, end int
	members    []member // of an object, in order
	items      []*node  // of an array
	text       string   // of a text; of the rest, as it is written
	comma      bool     // the last member or item has one behind it
}

// A member is a name with its value.
type member struct {
	name       string
	path       []string // in TOML, where a name may have several parts
	start, end int      // from the name to the end of the value
	comma      int      // where the comma behind it is; -1 for none
	value      *node
}

// get finds a member by name. Of several the last counts, as it does for the
// clients.
func (n *node) get(name string) *node {
	if n == nil || n.kind != object {
		return nil
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// twice finds a name that an object has more than once.
func (n *node) twice() string {
	seen := map[string]bool{}
	for _, m := range n.members {
		if seen[m.name] {
			return m.name
		}
		seen[m.name] = true
	}
	return ""
}

// plain returns the value as encoding/json would, with numbers as they are
// written.
func (n *node) plain() any {
	switch n.kind {
	case object:
		out := make(map[string]any, len(n.members))
		for _, m := range n.members {
			out[m.name] = m.value.plain()
		}
		return out
	case array:
		out := make([]any, 0, len(n.items))
		for _, item := range n.items {
			out = append(out, item.plain())
		}
		return out
	case text:
		return n.text
	case boolean:
		return n.text == "true"
	case null:
		return nil
	}
	return numeral(n.text)
}

// A numeral is a number as it is written.
type numeral string

// lineAt counts the line of a byte, from 1.
func lineAt(data []byte, at int) int {
	return 1 + bytes.Count(data[:min(at, len(data))], []byte{'\n'})
}

// A syntaxError says where a document cannot be read. It quotes nothing: the
// document may hold secrets.
type syntaxError struct {
	line int
	what string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }
