package connectreport

import (
	"fmt"

	"ken/internal/cli/output"
	"ken/internal/setup"
)

// PrintClients prints the clients that have a configuration on this machine.
func PrintClients(p *output.Printer, found []setup.Client) {
	var rows [][]string
	for _, x := range found {
		state := "no MCP servers yet"
		switch {
		case x.Connected:
			state = "connected; ken disconnect " + x.Name + " undoes it"
		case x.Servers > 0:
			state = output.Plural(x.Servers, "MCP server") + "; ken connect " + x.Name + " puts Ken in front"
		}
		rows = append(rows, []string{x.Name, x.Title, state})
	}
	p.Table([]output.Column{{Style: output.Bold}, {}, {Grow: true}}, rows)
	if len(rows) == 0 {
		p.Linef("No client that Ken knows has a configuration here. ken connect generic --file FILE takes any other.")
	}
}

// Moves says how many servers move.
func Moves(n int) string {
	if n == 1 {
		return "1 server moves"
	}
	return fmt.Sprintf("%d servers move", n)
}

// Wrapped returns a list of names after a title, on lines of a width that terminals
// have.
func Wrapped(title string, names []string) string {
	text, width := title, len(title)
	for i, name := range names {
		if i > 0 {
			text, width = text+",", width+1
			if width+1+len(name) > 90 {
				text, width = text+"\n", 0
			} else {
				text, width = text+" ", width+1
			}
		}
		text, width = text+name, width+len(name)
	}
	return text
}
