package slash

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ken/capability"
)

// A Route says which action a line calls, and with what.
type Route struct {
	Command     string // as its package calls it, "/postman"
	Extension   string // "tools.postman"; empty when it came with none
	Action      string // empty for a command without actions
	Target      capability.ID
	Runner      string
	Description string

	// Args are the words after the action, flags among them, quotes removed.
	// For a command that takes its line as one text there are none, and Text
	// is all that follows the name.
	Args []string
	Text string

	// Signature is the action's, where it is known.
	Signature *Signature

	line   string
	words  []word
	asText bool
}

// Parse reads a command. Its errors have a *[Fault] as the cause and the kind
// capability.NotFound for an unknown name, capability.Unavailable for an action
// that cannot be used now, and capability.Invalid otherwise.
func (x *Index) Parse(line string) (Route, error) {
	name, ok := nameOf(line)
	if !ok {
		f := faultAt(line, 0, "this is no command", "begin with a slash and the name of a command")
		return Route{}, refusal(capability.NotFound, "", f)
	}
	cmd, err := x.lookup(line, name)
	if err != nil {
		return Route{}, err
	}
	from := 1 + len(name)
	r := Route{Command: "/" + cmd.Name, Extension: cmd.Extension, line: line}
	if a := cmd.action(""); a != nil && a.Text {
		return r.takeText(a, from)
	}
	line = strings.TrimRight(line, " \t\r\n")
	if len(line) > maxLine {
		f := faultAt("", 0, fmt.Sprintf("the line has %d bytes, more than %d", len(line), maxLine), "put the text into a file and name the file")
		return Route{}, refusal(capability.Invalid, r.Command, f)
	}
	r.line = line
	words, f := split(line, min(from, len(line)))
	if f != nil {
		return Route{}, refusal(capability.Invalid, r.Command, f)
	}
	a, rest, f := cmd.choose(line, words)
	if f != nil {
		return Route{}, refusal(capability.Invalid, r.Command, f)
	}
	if err := r.take(a); err != nil {
		return Route{}, err
	}
	r.words = rest
	r.Args = make([]string, len(rest))
	for i, w := range rest {
		r.Args[i] = w.text
	}
	return r, nil
}

func (r *Route) take(a *Action) error {
	r.Action, r.Target, r.Runner, r.Description, r.Signature = a.Name, a.Target, a.Runner, a.Description, a.Signature
	if a.Unavailable != "" {
		f := &Fault{Line: 1, Column: 1, Message: "it cannot be used now: " + a.Unavailable, Fix: "see ken catalog show " + string(a.Target)}
		return refusal(capability.Unavailable, r.Command, f)
	}
	return nil
}

// takeText keeps all that follows the name as it was typed.
func (r Route) takeText(a *Action, from int) (Route, error) {
	if err := r.take(a); err != nil {
		return Route{}, err
	}
	if len(r.line) > maxText {
		f := faultAt("", 0, fmt.Sprintf("the text has %d bytes, more than %d", len(r.line), maxText), "put it into a file and name the file")
		return Route{}, refusal(capability.Invalid, r.Command, f)
	}
	for at := from; at < len(r.line); {
		c, size := utf8.DecodeRuneInString(r.line[at:])
		if f := refuse(r.line, at, c, size, true); f != nil {
			return Route{}, refusal(capability.Invalid, r.Command, f)
		}
		at += size
	}
	r.Text, r.asText = strings.Trim(r.line[from:], " \t\r\n"), true
	return r, nil
}

// choose finds the action that the first word names. Where the first word
// cannot be a name, as a path or anything in quotes, the command itself or its
// default action takes all the words. A plain word that names no action is
// refused even then, because something else would run than was meant.
func (cmd *Command) choose(line string, words []word) (*Action, []word, *Fault) {
	names := cmd.actionNames()
	standard := cmd.action(cmd.Default)
	if standard == nil {
		standard = cmd.action("")
	}
	if len(words) > 0 && len(names) > 0 && isName(words[0]) {
		if a := cmd.action(words[0].text); a != nil {
			return a, words[1:], nil
		}
		f := faultAt(line, words[0].at, "/"+cmd.Name+" has no such action", "").suggesting(words[0].text, names, "its actions")
		if standard != nil {
			f.Fix += "; if it is an argument, " + beforeIt(standard) + "put quotes around it"
		}
		return nil, nil, f
	}
	switch {
	case standard != nil:
		return standard, words, nil
	case len(words) == 0:
		f := faultAt(line, len(line), "an action is missing", "")
		return nil, nil, f.suggesting("", names, "the actions of /"+cmd.Name)
	}
	f := faultAt(line, words[0].at, "an action must stand here", "")
	return nil, nil, f.suggesting("", names, "its actions")
}

func beforeIt(a *Action) string {
	if a.Name == "" {
		return ""
	}
	return "write " + a.Name + " before it or "
}

// isName: letters, digits, _ and -, beginning with a letter, typed plainly.
func isName(w word) bool {
	if w.text == "" || w.bare != len(w.text) {
		return false
	}
	for i, c := range []byte(w.text) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
