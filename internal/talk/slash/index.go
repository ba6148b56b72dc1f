package slash

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/coldsort"
)

// An Index finds commands by what a person types. What it answers never
// changes after [New], and it is safe for any number of goroutines. The zero Index knows no
// command.
//
// If several have a name, what the user or this program brought is meant, never
// what a project or an address brought. Among those, a command is meant before
// a tool, and a tool before one of an MCP server. Between equals the name is
// refused. A package's name or a server's name and a colon before the name
// always mean that one.
type Index struct {
	commands []Command // sorted by name

	// The commands that a name may mean. An alias is used if nothing has the
	// name, or only a project, an address or a server uses it.
	names, qualified, aliases map[string][]*Command

	signatures sync.Map // capability.ID to *Signature, as they were asked for
}

// New indexes commands; it copies the slice and keeps what it points to.
func New(commands []Command) *Index {
	x := &Index{
		commands: slices.Clone(commands),
		names:    map[string][]*Command{}, qualified: map[string][]*Command{}, aliases: map[string][]*Command{},
	}
	coldsort.Stable(x.commands, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	for i := range x.commands {
		cmd := &x.commands[i]
		x.names[cmd.Name] = append(x.names[cmd.Name], cmd)
		if cmd.Extension != "" {
			full := cmd.Extension + ":" + cmd.Name
			x.qualified[full] = append(x.qualified[full], cmd)
		}
		for _, alias := range cmd.Aliases {
			x.aliases[alias] = append(x.aliases[alias], cmd)
		}
	}
	for _, table := range []map[string][]*Command{x.names, x.qualified, x.aliases} {
		for name, found := range table {
			table[name] = first(found)
		}
	}
	return x
}

// first keeps the commands of the highest rank.
func first(found []*Command) []*Command {
	var best int
	for _, cmd := range found {
		best = max(best, cmd.rank())
	}
	return slices.DeleteFunc(found, func(cmd *Command) bool { return cmd.rank() < best })
}

// trusted reports whether the user or this program brought the command.
func (cmd *Command) trusted() bool { return cmd.Trust >= capability.TrustUser }

// own reports whether it is trusted and no server brought it.
func (cmd *Command) own() bool { return cmd.trusted() && !cmd.Server }

// rank orders commands with the same name; the highest is meant.
func (cmd *Command) rank() int {
	rank := int(cmd.Trust) // below 1<<4
	for bit, ahead := range []bool{!cmd.Server, !cmd.Tool, cmd.trusted()} {
		if ahead {
			rank |= 1 << (4 + bit)
		}
	}
	return rank
}

// Commands lists the commands by name. The caller must not change them.
func (x *Index) Commands() []Command { return x.commands }

// Is reports whether text is a command: a slash at its very beginning and,
// directly after it, the name of one that is known. A refusal is still a
// command; only what is not one may go to a model.
func (x *Index) Is(text string) bool {
	name, ok := nameOf(text)
	return ok && len(x.find(name)) > 0 || x.IsLater(text)
}

// Later is the word before a command that is to run as a job, as in
// "/later --at 22:30 /command".
const Later = "later"

// IsLater reports whether text begins with [Later], and no command has that name.
func (x *Index) IsLater(text string) bool {
	name, ok := nameOf(text)
	return ok && name == Later && len(x.find(Later)) == 0
}

// ForModel says how to say to a model what looks like a command.
const ForModel = "to say it to the model put a blank or a second slash before it"

// LooksLike reports whether text is a command, or begins as one: with a slash and
// a word such as commands have. Paths and comments do not.
func (x *Index) LooksLike(text string) bool {
	if x.Is(text) {
		return true
	}
	rest, ok := strings.CutPrefix(text, "/")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 || !strings.HasPrefix(rest, fields[0]) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsLetter(first) && !strings.ContainsFunc(fields[0], func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_:?!,", r)
	})
}

// Text returns what a message that is no command says. Where slashes stand
// before the name of a known command the first is the escape, and goes; all
// else stays as it is.
func (x *Index) Text(text string) string {
	name := strings.TrimLeft(text, "/")
	if slashes := len(text) - len(name); slashes >= 2 && x.Is("/"+name) {
		return text[1:]
	}
	return text
}

func (x *Index) find(name string) []*Command {
	name = norm.NFC.String(name)
	if found := x.qualified[name]; len(found) > 0 {
		return found
	}
	named, aliased := x.names[name], x.aliases[name]
	if len(named) == 0 || len(aliased) > 0 && aliased[0].own() && !named[0].own() {
		return aliased
	}
	return named
}

// nameOf returns the word after the slash. Whatever is no letter a name could
// hold ends it, blanks and control characters of any kind among it: what is
// wrong with those is said later, where it can be pointed at.
func nameOf(text string) (string, bool) {
	if len(text) < 2 || text[0] != '/' {
		return "", false
	}
	rest := text[1:]
	end := strings.IndexFunc(rest, func(r rune) bool {
		return r == ' ' || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Z, r) || invisible(r) || bidi(r)
	})
	if end >= 0 {
		rest = rest[:end]
	}
	return rest, rest != ""
}

// lookup finds the one command that a name means.
func (x *Index) lookup(text, name string) (*Command, error) {
	found := x.find(name)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		f := faultAt(text, 1, "no command has this name", "type / and see what there is")
		return nil, refusal(capability.NotFound, "", f.suggesting("/"+name, x.typed(), "the commands"))
	}
	f := faultAt(text, 1, fmt.Sprintf("%d commands have this name", len(found)), "call one by its id")
	for _, cmd := range found {
		if cmd.Extension != "" {
			f.Suggestions = append(f.Suggestions, "/"+cmd.Extension+":"+cmd.Name)
		}
	}
	if len(f.Suggestions) > 0 {
		f.Fix = "write " + strings.Join(f.Suggestions[:min(len(f.Suggestions), maxShown)], " or ")
	}
	return nil, refusal(capability.Invalid, "/"+found[0].Name, f)
}

// typed lists every name with its slash.
func (x *Index) typed() []string {
	var names []string
	for _, cmd := range x.commands {
		names = append(names, "/"+cmd.Name)
		for _, alias := range cmd.Aliases {
			names = append(names, "/"+alias)
		}
	}
	return slices.Compact(names)
}

// Signature returns the signature of a route's target and remembers it: the
// schema is asked for once in the life of the Index, which is that of one
// snapshot. A target without a schema has none, which [Route.Call] understands.
func (x *Index) Signature(target capability.ID, schema func() (json.RawMessage, error)) (*Signature, error) {
	if known, ok := x.signatures.Load(target); ok {
		return known.(*Signature), nil
	}
	raw, err := schema()
	if err != nil {
		return nil, err
	}
	var sig *Signature
	if len(raw) > 0 {
		read, err := ReadSignature(raw)
		if err != nil {
			return nil, err
		}
		sig = &read
	}
	x.signatures.Store(target, sig)
	return sig, nil
}

// Suggest returns the commands that the first word of a message may have been
// meant for. A surface can offer them when text that begins with a slash is
// no command; it sends nothing anywhere by itself.
func (x *Index) Suggest(text string) []string {
	name, ok := nameOf(text)
	if !ok || len(x.find(name)) > 0 {
		return nil
	}
	return nearest("/"+name, x.typed())
}
