// Package helptext has the texts of commands and flags that cobra and pflag would
// otherwise write in their own words.
package helptext

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ken/internal/cli/output"
	"ken/internal/spelling"
)

// Describe replaces the texts of the commands and flags that cobra adds.
func Describe(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short, cmd.Long = "Print a script that completes commands and flags in a shell", ""
		for _, shell := range cmd.Commands() {
			shell.Short = "Print the script for " + shell.Name()
		}
	}
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, given []string) {
		cmd.InitDefaultHelpFlag()
		cmd.Flags().Lookup("help").Usage = "print this help"
		show(cmd, given)
	})
}

// FlagFault says what is wrong with a flag, and names the one that was probably
// meant.
func FlagFault(cmd *cobra.Command, err error) string {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if e.GetSpecifiedShortnames() != "" {
			return fmt.Sprintf("%s has no flag -%s", cmd.CommandPath(), output.Line(e.GetSpecifiedName()))
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		text := fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), output.Line(e.GetSpecifiedName()))
		if near := spelling.Nearest(e.GetSpecifiedName(), known); near != "" {
			text += "; did you mean --" + near + "?"
		}
		return text
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		what, _ := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Sprintf("--%s needs a value (%s)", e.GetFlag().Name, what)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		what, _ := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Sprintf("--%s cannot be %q; write a value of this kind: %s", e.GetFlag().Name, e.GetValue(), what)
	}
	return err.Error()
}
