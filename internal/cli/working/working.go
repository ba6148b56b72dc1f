// Package working gives every command that takes long a text that says what it
// does.
package working

import (
	"strings"

	"github.com/spf13/cobra"
)

// works says what a command does, for the progress line of one that takes over a
// second. The name of a group stands for all its commands that have no line of
// their own. An empty text: the command runs until it is stopped, or shows by
// itself what it does.
var works = map[string]string{
	"ken add":          "Reading what is to be added",
	"ken approve":      "Reading the approval requests",
	"ken audit":        "Reading the audit log",
	"ken audit verify": "Checking the audit log",
	"ken backup":       "Writing the backup",
	"ken catalog":      "Reading the catalog",
	"ken chat":         "Reading the catalog",
	"ken config":       "Reading the settings",
	"ken connect":      "Reading the client's configuration",
	"ken demo":         "",
	"ken disconnect":   "Restoring the client's configuration",
	"ken discover":     "Searching the catalog",
	"ken doctor":       "Checking this installation",
	"ken eval":         "Measuring",
	"ken extension":    "Looking at extensions and MCP servers",
	"ken init":         "Writing the sample",
	"ken jobs":         "Reading the jobs",
	"ken login":        "Asking the server",
	"ken mcp":          "",
	"ken model":        "Asking the providers",
	"ken policy":       "Reading the rules",
	"ken remove":       "Removing it",
	"ken restore":      "Restoring the backup",
	"ken run":          "Reading the catalog",
	"ken secret":       "Opening the secrets",
	"ken serve":        "",
	"ken stats":        "Reading what was shown and used",
	"ken token":        "Reading the tokens",
	"ken worker":       "",
}

// Show makes every command below cmd call begin with its text before it runs, and
// what begin returned afterwards.
func Show(cmd *cobra.Command, begin func(what string) (end func())) {
	for _, sub := range cmd.Commands() {
		Show(sub, begin)
	}
	what, run := Text(cmd.CommandPath()), cmd.RunE
	if run == nil || what == "" {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		defer begin(what)()
		return run(cmd, given)
	}
}

// Text returns the text of a command, or of the group that it is in.
func Text(path string) string {
	for path != "" {
		if what, ok := works[path]; ok {
			return what
		}
		path = path[:max(0, strings.LastIndexByte(path, ' '))]
	}
	return ""
}

// Named returns the commands that have a text of their own, which may be empty.
func Named() map[string]bool {
	out := map[string]bool{}
	for path := range works {
		out[path] = true
	}
	return out
}
