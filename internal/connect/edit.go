package connect

import (
	"bytes"
	"slices"
	"strings"

	"ken/internal/coldsort"
)

// An edit replaces bytes of a document.
type edit struct {
	start, end int
	text       string
}

// apply makes a copy of data with the edits done. They do not overlap.
func apply(data []byte, edits []edit) []byte {
	edits = ordered(edits)
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(data[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(data[at:])
	return out.Bytes()
}

func ordered(edits []edit) []edit {
	edits = slices.Clone(edits)
	coldsort.Stable(edits, func(a, b edit) int { return a.start - b.start })
	return edits
}

// A change is what happens to one table of servers.
type change struct {
	at   []string        // the names that lead to the table
	drop map[string]bool // entries that go
	put  []put           // entries that come, in the place of the first that goes

	// add and remove change a list of names at the place instead.
	add, remove string
}

// A put is an entry that comes.
type put struct {
	name  string
	value pairs  // rendered in the style of the file
	raw   string // or the text of the value as it was; of TOML, all its lines
	plain any    // of raw, what it says
}

// isList reports whether a change is one of a list of names.
func (c change) isList() bool { return c.add != "" || c.remove != "" }

// pairs is an object whose order is kept.
type pairs []pair

type pair struct {
	name  string
	value any // string, bool, int, []string, pairs
}

// style is how a document is laid out.
type style struct {
	eol    string // empty: all on one line
	indent string // of one step
}

func styleOf(data []byte, root *node) style {
	s := style{eol: "\n", indent: "  "}
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		s.eol = "\r\n"
	}
	if root == nil || len(root.members) == 0 {
		return s
	}
	first := root.members[0].start
	line := bytes.LastIndexByte(data[:first], '\n') + 1
	if line <= root.start {
		s.eol = ""
		return s
	}
	if lead := data[line:first]; len(lead) > 0 && len(bytes.TrimLeft(lead, " \t")) == 0 {
		s.indent = string(lead)
	}
	return s
}

// leading returns the white space that the line of a byte begins with.
func leading(data []byte, at int) string {
	line := bytes.LastIndexByte(data[:at], '\n') + 1
	end := line
	for end < at && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	return string(data[line:end])
}

// whole widens a span to its lines when nothing else is on them, and
// otherwise takes the blanks behind it.
func whole(data []byte, start, end int) (int, int) {
	for end < len(data) && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	line := start
	for line > 0 && (data[line-1] == ' ' || data[line-1] == '\t') {
		line--
	}
	atStart := line == 0 || data[line-1] == '\n'
	switch rest := data[end:]; {
	case atStart && bytes.HasPrefix(rest, []byte("\r\n")):
		return line, end + 2
	case atStart && bytes.HasPrefix(rest, []byte("\n")):
		return line, end + 1
	}
	return start, end
}

// editList drops and puts members of an object that exists. The text of what
// comes is given by render, for the indentation it stands at.
func editList(data []byte, n *node, c change, s style, render func(p put, indent string) string) []edit {
	if len(c.put) == 0 && emptied(data, n, c) {
		return []edit{{n.start, n.end, "{}"}}
	}
	var edits []edit
	placed := len(c.put) == 0
	last := -1 // the last member that stays
	for i, m := range n.members {
		if !c.drop[m.name] {
			last = i
			continue
		}
		if !placed {
			placed = true
			last = i
			edits = append(edits, edit{m.start, m.end, joined(data, m.start, c.put, s, render)})
			continue
		}
		end := m.end
		if m.comma >= 0 {
			end = m.comma + 1
		}
		start, end := whole(data, m.start, end)
		edits = append(edits, edit{start, end, ""})
	}
	// The last one that stays has no comma unless the last of all had one.
	if tail := len(n.members) - 1; last >= 0 && last < tail && !n.comma {
		at := n.members[last].comma
		edits = append(edits, edit{at, at + 1, ""})
	}
	if !placed {
		edits = append(edits, appended(data, n, c.put, s, render))
	}
	return edits
}

// joined renders entries for the place of one that was there.
func joined(data []byte, at int, puts []put, s style, render func(put, string) string) string {
	indent := leading(data, at)
	between := "," + s.eol + indent
	if line := bytes.LastIndexByte(data[:at], '\n') + 1; s.eol == "" || len(bytes.TrimSpace(data[line:at])) > 0 {
		between = ", "
	}
	var all []string
	for _, p := range puts {
		all = append(all, render(p, indent))
	}
	return strings.Join(all, between)
}

// appended puts entries behind the last member of an object.
func appended(data []byte, n *node, puts []put, s style, render func(put, string) string) edit {
	outer := leading(data, n.start)
	if len(n.members) == 0 {
		if s.eol == "" {
			return edit{n.start + 1, n.start + 1, joined(data, 0, puts, style{}, render)}
		}
		inner := outer + s.indent
		var b strings.Builder
		for i, p := range puts {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(s.eol + inner + render(p, inner))
		}
		// Comments inside stay where they are, behind what is new.
		if len(bytes.TrimSpace(data[n.start+1:n.end-1])) == 0 {
			return edit{n.start + 1, n.end - 1, b.String() + s.eol + outer}
		}
		return edit{n.start + 1, n.start + 1, b.String()}
	}
	last := n.members[len(n.members)-1]
	at, before, after := last.end, ",", ""
	if last.comma >= 0 {
		at, before, after = last.comma+1, "", ","
	}
	between := " "
	indent := outer
	if line := bytes.LastIndexByte(data[:last.start], '\n'); s.eol != "" && line > n.start {
		indent = leading(data, last.start)
		between = s.eol + indent
	}
	var all []string
	for _, p := range puts {
		all = append(all, render(p, indent))
	}
	return edit{at, at, before + between + strings.Join(all, ","+between) + after}
}

// emptied reports whether a change leaves an object with nothing in it, not
// even a comment.
func emptied(data []byte, n *node, c change) bool {
	at := n.start + 1
	for _, m := range n.members {
		if !c.drop[m.name] || len(bytes.TrimSpace(data[at:m.start])) > 0 {
			return false
		}
		at = m.end
		if m.comma >= 0 {
			if len(bytes.TrimSpace(data[at:m.comma])) > 0 {
				return false
			}
			at = m.comma + 1
		}
	}
	return len(n.members) > 0 && len(bytes.TrimSpace(data[at:n.end-1])) == 0
}
