package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/helptext"
	"ken/internal/cli/working"
	"ken/internal/spelling"
)

// newRoot returns the command ken with all its commands.
func newRoot(c *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "ken",
		Short: "One catalog of what an AI agent can do: find, govern, run and record",
		Long: "Ken keeps one live catalog of every capability an agent has (tools, skills, cards,\n" +
			"commands, channels, APIs). It shows the model the few that fit a message, decides by\n" +
			"your rules which calls may run, runs them in a sandbox, and records every call.",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.configFile, "config", "", "read this `file` instead of the usual ken.yaml")
	flags.StringArrayVar(&c.catalogs, "catalog", nil, "read only this `path`, a directory or a file of capabilities (repeatable)")
	flags.BoolVar(&c.json, "json", false, "print one JSON document")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{seeHelp(cmd, helptext.FlagFault(cmd, err))}
	})
	root.Args = func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return nil
		}
		why := meant(cmd, given[0])
		if slices.Contains(c.catalogs, "catalog") {
			why = "; --catalog took the word catalog as its path"
		}
		return usageError{seeHelp(cmd, fmt.Sprintf("unknown command %q%s", given[0], why))}
	}
	// The flag is no version of cobra's with a template: one template makes the
	// linker keep every method of the program, which is megabytes.
	version := root.Flags().BoolP("version", "v", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			c.out.Linef("ken %s", app.ThisBuild())
			return nil
		}
		if err := cmd.Help(); err != nil {
			return err
		}
		c.out.Linef("\n%s", c.nextStep(cmd.Context()))
		return nil
	}
	addCommands(root, c)
	working.Show(root, c.working)
	helptext.Describe(root)
	return root
}

// newHelp returns the command that prints the help of another one.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Print the help of a command",
		RunE: func(_ *cobra.Command, given []string) error {
			cmd, rest, err := root.Find(given)
			if err != nil {
				return usageError{seeHelp(root, err.Error())}
			}
			if len(rest) > 0 && cmd.HasSubCommands() {
				return usageError{seeHelp(cmd, fmt.Sprintf("unknown command %q%s", rest[0], meant(cmd, rest[0])))}
			}
			return cmd.Help()
		},
	}
}

// args makes checks of arguments usage errors. Cobra's own count arguments, and
// get a text that names them.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		err := check(cmd, given)
		if err == nil {
			return nil
		}
		_, wanted, _ := strings.Cut(cmd.Use, " ")
		text := fmt.Sprintf("%s needs %s", cmd.CommandPath(), wanted)
		switch {
		case !strings.Contains(err.Error(), "arg(s)") && !strings.HasPrefix(err.Error(), "unknown command"):
			text = err.Error()
		case wanted == "" || len(given) == 1 && check(cmd, nil) == nil:
			text = fmt.Sprintf("%s takes no argument, and %q was given", cmd.CommandPath(), given[0])
		case len(given) > 0:
			text = fmt.Sprintf("%s takes %s, and %s given", cmd.CommandPath(), wanted, counted(len(given)))
		}
		return usageError{fmt.Errorf("%s; see %s --help", text, cmd.CommandPath())}
	}
}

func counted(n int) string {
	if n == 1 {
		return "1 argument was"
	}
	return fmt.Sprintf("%d arguments were", n)
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return nil
			}
			return usageError{seeHelp(cmd, fmt.Sprintf("%s has no command %q%s", cmd.CommandPath(), given[0], meant(cmd, given[0])))}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }, // the commands, and what each does
	}
	cmd.AddCommand(subs...)
	return cmd
}

// meant guesses the command behind a word.
func meant(cmd *cobra.Command, word string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	if near := spelling.Nearest(word, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
