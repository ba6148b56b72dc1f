package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/govern/policy"
)

// policyCommand is ken policy: it prints the rules.
type policyCommand struct{ *environment }

func newPolicy(env *environment) *cobra.Command {
	c := &policyCommand{env}
	var cedar, schema bool
	show := &cobra.Command{
		Use: "show", Short: "Print the rules in the order in which they are checked", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(_ context.Context, a *app.App, _ []string) error {
			if schema {
				_, err := io.WriteString(c.out, policy.Schema)
				return err
			}
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
				rows = append(rows, []string{l.Stage, l.Effect, l.Text, l.Knob, l.Where, l.Rule})
			}
			c.out.Table([]output.Column{{Style: output.Cyan}, {Styles: effectStyles, Style: output.Yellow}, {Grow: true}, {Style: output.Dim}, {Style: output.Dim}, {Style: output.Bold}}, rows)
			return nil
		}),
	}
	show.Flags().BoolVar(&cedar, "cedar", false, "print Cedar policies")
	show.Flags().BoolVar(&schema, "schema", false, "print the schema of Cedar policies: what they may speak of")
	return group("policy", "Show the rules that decide about calls", show)
}

var effectStyles = map[string]string{"deny": output.Red, "allow": output.Green}
