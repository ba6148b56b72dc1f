package cli

import (
	"context"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/tokens"
)

func newToken(c *environment) *cobra.Command {
	return group("token", "Add, list and remove agent tokens for ken serve", tokens.Commands(tokens.Config{
		Out: c.out, JSON: &c.json, PrintJSON: c.printJSON, Args: args,
		With: func(cmd *cobra.Command, run func(context.Context, tokens.App) error) error {
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				return run(ctx, tokens.App{
					State: a.Places.State, Remove: a.Replicas.RemoveToken,
					CancelJobs: func(ctx context.Context, name string) (int, error) { return a.CancelJobsOf(ctx, name, a.Principal) },
				})
			})(cmd, nil)
		},
	})...)
}
