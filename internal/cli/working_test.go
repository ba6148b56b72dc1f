package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"ken/internal/cli/working"
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
		used[path] = true
		switch cmd.Name() {
		case "ken", "help", "completion", "man", "version":
			return // they only print
		}
		if cmd.Parent() == cmd.Root() {
			if !working.Named()[path] {
				t.Errorf("%s has no text in internal/cli/working", path)
			}
		}
	}
	walk(newRoot(&environment{}))
	for path := range working.Named() {
		if !used[path] {
			t.Errorf("internal/cli/working has %q, which is no command", path)
		}
	}
}
