package slash

import (
	"fmt"
	"strings"
)

// Help is what there is to say about one command. All of it came from outside.
type Help struct {
	Command   string       `json:"command"` // "/postman"
	Extension string       `json:"extension,omitempty"`
	Summary   string       `json:"summary,omitempty"`
	Aliases   []string     `json:"aliases,omitempty"`
	Actions   []HelpAction `json:"actions"`
}

// A HelpAction is what there is to say about one action. Its usage document is
// not part of it: that is read on demand, by Target.
type HelpAction struct {
	Name        string      `json:"name,omitempty"`
	Usage       string      `json:"usage"`
	Description string      `json:"description,omitempty"`
	Default     bool        `json:"default,omitempty"`
	Unavailable string      `json:"unavailable,omitempty"`
	Target      string      `json:"target"`
	Parameters  []Parameter `json:"parameters,omitempty"`
}

// Help describes the command of a name, with or without its slash. It fails
// like [Index.Parse] where the name means none or several.
func (x *Index) Help(name string) (Help, error) {
	if len(name) > 0 && name[0] == '/' {
		name = name[1:]
	}
	cmd, err := x.lookup("/"+name, name)
	if err != nil {
		return Help{}, err
	}
	h := Help{Command: "/" + cmd.Name, Extension: cmd.Extension, Summary: cmd.Summary}
	for _, alias := range cmd.Aliases {
		h.Aliases = append(h.Aliases, "/"+alias)
	}
	for _, a := range cmd.Actions {
		entry := HelpAction{
			Name: a.Name, Usage: usage(h.Command, a.Name, a.Signature), Description: a.Description,
			Default: a.Name == cmd.Default, Unavailable: a.Unavailable, Target: string(a.Target),
		}
		if a.Signature != nil {
			entry.Parameters = a.Signature.Parameters
		}
		if a.Text {
			entry.Usage += " [text]"
		}
		h.Actions = append(h.Actions, entry)
	}
	return h, nil
}

// usage writes how an action is called: "/postman run <collection> [--bail]".
func usage(command, action string, sig *Signature) string {
	var b strings.Builder
	b.WriteString(command)
	if action != "" {
		b.WriteString(" " + action)
	}
	if sig == nil {
		return b.String()
	}
	for i := range sig.Parameters {
		p := &sig.Parameters[i]
		piece := p.flag()
		switch {
		case p.Positional && (p.Rest || p.is("array")):
			piece = "<" + p.Name + ">..."
		case p.Positional:
			piece = "<" + p.Name + ">"
		case !p.bare():
			piece = fmt.Sprintf("%s <%s>", piece, p.Name)
		}
		if !p.Required {
			piece = "[" + piece + "]"
		}
		b.WriteString(" " + piece)
	}
	return b.String()
}
