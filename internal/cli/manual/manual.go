// Package manual writes the manual pages of a command and the commands below it,
// in the language of man.
package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Page is one manual page.
type Page struct {
	Name string // of its file, such as ken-catalog.1
	Text []byte
}

// Pages returns a page for the command root and one for every command below it
// that is not hidden. version and date, which may be empty, stand at their foot.
func Pages(root *cobra.Command, version, date string) []Page {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var out []Page
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		out = append(out, Page{pageName(cmd) + ".1", page(cmd, version, date)})
		for _, sub := range listed(cmd) {
			walk(sub)
		}
	}
	walk(root)
	return out
}

// listed returns the commands directly below cmd that people are told of.
func listed(cmd *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			out = append(out, sub)
		}
	}
	return out
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func page(cmd *cobra.Command, version, date string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s %s %s\n", quoted(strings.ToUpper(pageName(cmd))), quoted(date), quoted("ken "+version), quoted("Ken"))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escaped(pageName(cmd)), escaped(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escaped(cmd.UseLine()))
	if cmd.Long != "" && cmd.Long != cmd.Short {
		b.WriteString(".SH DESCRIPTION\n" + literal(cmd.Long))
	}
	if subs := listed(cmd); len(subs) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", escaped(pageName(sub)), escaped(sub.Short))
		}
	}
	cmd.InitDefaultHelpFlag()
	flags(&b, "OPTIONS", cmd.NonInheritedFlags())
	flags(&b, "OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + literal(cmd.Example))
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", escaped(pageName(cmd.Parent())))
	}
	return []byte(b.String())
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, about := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		if unset := []string{"", "false", "0", "0s", "[]"}; !slices.Contains(unset, f.DefValue) {
			about += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escaped(name), escaped(about))
	})
}

// literal returns text whose lines stay as they are.
func literal(text string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		b.WriteString(escaped(strings.TrimRight(line, "\n")) + "\n")
	}
	b.WriteString(".fi\n")
	return b.String()
}

// escaped returns text in which man reads no commands.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

func quoted(text string) string { return `"` + strings.ReplaceAll(escaped(text), `"`, `""`) + `"` }
