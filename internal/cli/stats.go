package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/moment"
	"ken/internal/cli/statsreport"
)

// statsCommand is ken stats: it prints what was shown and used.
type statsCommand struct{ *environment }

func newStats(env *environment) *cobra.Command {
	c := &statsCommand{env}
	since := moment.Text("48h")
	var lift bool
	cmd := &cobra.Command{
		Use: "stats", Short: "Show which capabilities were shown and used, and what they cost", Args: args(cobra.NoArgs),
		Example: "  ken stats --since 48h",
		RunE: c.withApp(func(_ context.Context, a *app.App, _ []string) error {
			now := time.Now()
			from, err := parseMoment("--since", string(since), now)
			if err != nil {
				return err
			}
			if from.IsZero() || !from.Before(now) {
				return usageError{fmt.Errorf("--since is %q; use a duration such as 48h", string(since))}
			}
			if lift {
				if err := a.Door.Lift(a.Principal); err != nil {
					return err
				}
			}
			report := a.Door.Report(from)
			if c.json {
				return c.printJSON(report)
			}
			statsreport.Print(c.out, report, now.Sub(from))
			return nil
		}),
	}
	cmd.Flags().Var(&since, "since", "how far back to look (`duration`)")
	cmd.Flags().BoolVar(&lift, "lift", false, "reset the kill switch first")
	return cmd
}
