package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestWorks: every command says what it does while it takes long, or is named as
// one that shows it by itself; and every text is of a command.
func TestWorks(t *testing.T) {
	used := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := cmd.CommandPath()
		if _, ok := works[path]; ok {
			used[path] = true
		}
		switch cmd.Name() {
		case "ken", "help", "completion", "man", "version":
			return // they only print
		}
		if cmd.Parent() == cmd.Root() {
			if _, named := works[path]; !named {
				t.Errorf("%s has no text in works", path)
			}
		}
	}
	walk(newRoot(&environment{}))
	for path := range works {
		if !used[path] {
			t.Errorf("works has %q, which is no command", path)
		}
	}
}
