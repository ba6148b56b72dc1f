package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/statsreport"
	"ken/internal/duration"
)

// statsCommand is ken stats: it prints what was shown and used.
type statsCommand struct{ *environment }

func newStats(env *environment) *cobra.Command {
	c := &statsCommand{env}
	var since time.Duration
	var lift bool
	cmd := &cobra.Command{
		Use: "stats", Short: "Show which capabilities were shown and used, and what they cost", Args: args(cobra.NoArgs),
		Example: "  ken stats --since 48h",
		RunE: c.withApp(func(_ context.Context, a *app.App, _ []string) error {
			if since <= 0 {
				return usageError{fmt.Errorf("--since is %s; use a duration such as 48h", duration.Text(since))}
			}
			if lift {
				if err := a.Door.Lift(a.Principal); err != nil {
					return err
				}
			}
			report := a.Door.Report(time.Now().Add(-since))
			if c.json {
				return c.printJSON(report)
			}
			statsreport.Print(c.out, report, since)
			return nil
		}),
	}
	cmd.Flags().DurationVar(&since, "since", 48*time.Hour, "how far back to look (`duration`)")
	cmd.Flags().Lookup("since").DefValue = "48h" // which is how it is typed
	cmd.Flags().BoolVar(&lift, "lift", false, "reset the kill switch first")
	return cmd
}
