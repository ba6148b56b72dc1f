package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/commands.md")

// TestCommandReference checks that docs/commands.md is what the commands say about
// themselves, as go test -update writes it.
func TestCommandReference(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	want := commandReference(newRoot(&environment{}))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != want {
		t.Errorf("%s is out of date; run go test ./internal/cli -run %s -update", path, t.Name())
	}
}

// commandReference lists all commands that people are told of.
func commandReference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nThis page is generated from the program. `ken COMMAND --help` prints the same text.\n\n")
	b.WriteString("These flags work with every command:\n\n" + flagTable(root.PersistentFlags()))
	var walk func(cmd *cobra.Command, level int)
	walk = func(cmd *cobra.Command, level int) {
		for _, sub := range cmd.Commands() {
			if !sub.IsAvailableCommand() || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			about := sub.Long
			if about == "" {
				about = sub.Short
			}
			fmt.Fprintf(&b, "\n%s %s\n\n```text\n%s\n```\n\n", strings.Repeat("#", level), sub.CommandPath(), sub.UseLine())
			b.WriteString(prose(about) + "\n")
			if table := flagTable(sub.NonInheritedFlags()); table != "" {
				b.WriteString("\n" + table)
			}
			if sub.Example != "" {
				b.WriteString("\n```text\n" + dedented(sub.Example) + "\n```\n")
			}
			walk(sub, min(level+1, 4))
		}
	}
	walk(root, 2)
	return b.String()
}

// prose returns a help text as a paragraph, or as it is where its lines are laid out.
func prose(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "\n ") || strings.Contains(text, "\t") {
		return "```text\n" + text + "\n```"
	}
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}

func dedented(text string) string {
	var lines []string
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}

func flagTable(set *pflag.FlagSet) string {
	var b strings.Builder
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" || f.Name == "help" {
			return
		}
		if b.Len() == 0 {
			b.WriteString("| flag | meaning |\n|---|---|\n")
		}
		value, about := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			about += " (default `" + f.DefValue + "`)"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`).Replace(about))
	})
	return b.String()
}
