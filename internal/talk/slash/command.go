package slash

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/coldsort"
)

// A Command is what a person calls by "/name". It is plain data.
type Command struct {
	Name      string   // without the slash
	Aliases   []string // other names, without the slash
	Extension string   // the package or MCP server it came with, as in "tools.postman"; may be empty
	Summary   string
	Default   string // the action when none is named; may be empty

	// Trust is that of the place it came from. Of two commands with one name
	// the more trusted is meant; between equals the name is refused. See
	// [Index] for tools.
	Trust capability.Trust

	// Tool means that it is a tool that can be typed, not a command that a
	// file defines. Server means that an MCP server brought it.
	Tool, Server bool

	// Actions are what the command can do, in the order given. An action
	// without a name is the command itself.
	Actions []Action
}

// An Action is one thing that a command does.
type Action struct {
	Name        string
	Target      capability.ID
	Description string
	Runner      string
	Unavailable string // why it cannot be used now, when it cannot

	// Text means that all which follows is one text, line breaks and quotes
	// included: the command is a prompt.
	Text bool

	// Signature says which arguments it takes; nil until its schema has been
	// read.
	Signature *Signature
}

// Commands takes the commands out of capabilities and groups their actions.
// It leaves out what cannot be typed as one word. The schema of an action is
// asked for when schema is not nil; without it routing works all the same and
// only completion and help know no arguments. The order of the capabilities
// decides the order of actions, and nothing else.
func Commands(capabilities []*capability.Capability, schema func(*capability.Capability) json.RawMessage) []Command {
	type owner struct{ name, extension string }
	at := map[owner]int{}
	var commands []Command
	for _, c := range capabilities {
		if c.Kind != capability.KindCommand {
			continue
		}
		name, action, _ := strings.Cut(c.Name, " ")
		if !typable(name) || action != "" && !typable(action) {
			continue
		}
		key := owner{name, extensionOf(c)}
		i, known := at[key]
		if !known {
			i = len(commands)
			at[key] = i
			commands = append(commands, Command{Name: name, Extension: key.extension, Trust: c.Trust})
		}
		commands[i].add(c, action, schema)
	}
	coldsort.Stable(commands, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return commands
}

// defaultAction returns the action that a command runs if none is named. Only
// extension packages and Ken's own tools define one: other formats keep every key
// that they do not know in Meta.
func defaultAction(c *capability.Capability) string {
	if f := c.Origin.Format; f != capability.FormatExtension && f != "memory" {
		return ""
	}
	return c.Meta["default_action"]
}

func (cmd *Command) add(c *capability.Capability, name string, schema func(*capability.Capability) json.RawMessage) {
	a := Action{Name: name, Target: c.ID, Description: c.Description, Unavailable: c.Unavailable}
	a.Text = c.Run == nil && c.Origin.Format == "command"
	if c.Run != nil {
		a.Runner = c.Run.Runner
	}
	if schema != nil {
		if raw := schema(c); len(raw) > 0 {
			if sig, err := ReadSignature(raw); err == nil {
				a.Signature = &sig
			}
		}
	}
	if cmd.Summary == "" {
		cmd.Summary = c.Description
	}
	if cmd.Default == "" {
		cmd.Default = defaultAction(c)
	}
	for _, alias := range c.Aliases {
		plain, slash := strings.CutPrefix(alias, "/")
		// An action's other names are for search; only "/x" is typed.
		if (slash || name == "") && plain != cmd.Name && typable(plain) && !slices.Contains(cmd.Aliases, plain) {
			cmd.Aliases = append(cmd.Aliases, plain)
		}
	}
	// A command is trusted no further than the least of its parts.
	cmd.Trust = min(cmd.Trust, c.Trust)
	if !slices.ContainsFunc(cmd.Actions, func(b Action) bool { return b.Name == name }) {
		cmd.Actions = append(cmd.Actions, a)
	}
}

// extensionOf returns the name of the package that a command came with.
func extensionOf(c *capability.Capability) string {
	for _, id := range c.RequiredTools {
		if name, ok := strings.CutPrefix(id, string(capability.KindExtension)+":"); ok {
			return name
		}
	}
	return ""
}

// typable: one word that needs no quotes.
func typable(name string) bool {
	return name != "" && len(name) <= 256 && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("_-.:", r)
	})
}

func (cmd *Command) action(name string) *Action {
	for i := range cmd.Actions {
		if cmd.Actions[i].Name == name {
			return &cmd.Actions[i]
		}
	}
	return nil
}

// actionNames lists what may stand after the command's name.
func (cmd *Command) actionNames() []string {
	var names []string
	for _, a := range cmd.Actions {
		if a.Name != "" {
			names = append(names, a.Name)
		}
	}
	return names
}
