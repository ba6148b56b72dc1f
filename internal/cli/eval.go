package cli

import (
	"context"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/evals"
)

func newEval(c *environment) *cobra.Command {
	return evals.New(evals.Config{
		In: c.in, Out: c.out, Err: c.err, JSON: &c.json, PrintJSON: c.printJSON, Args: args,
		ConfigFile: &c.configFile, Catalogs: &c.catalogs,
		With: func(cmd *cobra.Command, run func(context.Context, evals.App) error) error {
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				return run(ctx, evals.App{Door: a.Door, Vectors: a.Vectors, View: a.View, Ranker: a.Ranker})
			})(cmd, nil)
		},
	})
}
