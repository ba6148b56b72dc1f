package cli

import (
	"context"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/govern/policy"
)

// policyCommand is ken policy: it prints the rules.
type policyCommand struct{ *environment }

func newPolicy(env *environment) *cobra.Command {
	c := &policyCommand{env}
	var cedar bool
	show := &cobra.Command{
		Use: "show", Short: "Print the rules in the order in which they are checked", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(_ context.Context, a *app.App, _ []string) error {
			if cedar && c.json {
				return c.printJSON(map[string]string{"cedar": string(a.Rules().Cedar())})
			}
			if cedar {
				_, err := c.out.Write(a.Rules().Cedar())
				return err
			}
			lines := policy.Describe(a.Rules())
			if c.json {
				return c.printJSON(map[string]any{"profile": a.Rules().Settings().Profile.String(), "rules": lines})
			}
			rows := make([][]string, 0, len(lines))
			for _, l := range lines {
				rows = append(rows, []string{l.Stage, l.Effect, l.Text, l.Knob, l.Where})
			}
			c.out.Table([]output.Column{{Style: output.Cyan}, {Styles: effectStyles, Style: output.Yellow}, {Grow: true}, {Style: output.Dim}, {Style: output.Dim}}, rows)
			return nil
		}),
	}
	show.Flags().BoolVar(&cedar, "cedar", false, "print Cedar policies")
	return group("policy", "Show the rules that decide about calls", show)
}

var effectStyles = map[string]string{"deny": output.Red, "allow": output.Green}
