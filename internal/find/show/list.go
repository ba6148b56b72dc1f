package show

import (
	"iter"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

const (
	listHead        = "Besides your tools there is the following. Read a text with describe_capability before you use it:"
	listCommands    = "Prompts that the person can type: "
	listUnavailable = "Unavailable here (describe_capability says why): "

	listLine  = 160 // maximum characters of a description in a list
	plainLine = 1000
)

// A List describes everything that is not a tool, one line each. It replaces
// the map if all tools are sent, because nothing is left to search for.
type List struct {
	Text   string // empty: there are only tools
	Tokens int

	// Marks identifies the line of each listed entry.
	Marks map[capability.ID]string
}

// MakeList lists active entries sorted by id. Entries that are unavailable here
// are named but not described, and so are prompts, which a person types and no
// model calls.
func MakeList(entries iter.Seq[*catalog.Entry], count tokenizer.Counter) List {
	l := List{Marks: map[capability.ID]string{}}
	var lines, commands, unavailable []string
	for e := range entries {
		switch {
		case e.State != catalog.Active:
			continue
		case !e.Available:
			unavailable = append(unavailable, untrusted.Line(e.Name, 80))
			l.Marks[e.ID] = "unavailable"
		case e.Kind == capability.KindCommand:
			commands = append(commands, "/"+untrusted.Line(e.Name, 40))
			l.Marks[e.ID] = "prompt"
		default:
			line := untrusted.Line("- "+string(e.ID)+": "+untrusted.Line(e.Description, listLine), listLine+130)
			lines = append(lines, line)
			l.Marks[e.ID] = line
		}
	}
	var parts []string
	if len(lines) > 0 {
		slices.Sort(lines)
		parts = append(parts, listHead+"\n"+strings.Join(lines, "\n"))
	}
	for _, names := range []struct {
		head string
		list []string
	}{{listCommands, commands}, {listUnavailable, unavailable}} {
		if len(names.list) > 0 {
			slices.Sort(names.list)
			parts = append(parts, names.head+strings.Join(names.list, ", "))
		}
	}
	l.Text = strings.Join(parts, "\n\n")
	if l.Text != "" {
		l.Tokens = count(l.Text)
	}
	return l
}

// PlainLine returns the line for an entry that is not a tool in a prompt
// without Ken: its name and the whole description.
func PlainLine(e *catalog.Entry) string {
	return "- " + untrusted.Line(string(e.ID), 120) + ": " + untrusted.Line(e.Description, plainLine) + "\n"
}
