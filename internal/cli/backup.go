package cli

import (
	"context"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/backups"
	"ken/internal/govern/audit"
)

// newBackup returns ken backup and ken restore.
func newBackup(c *environment) []*cobra.Command {
	return backups.Commands(backups.Config{
		Out: c.out, JSON: &c.json, PrintJSON: c.printJSON, Args: args, Version: app.Version,
		With: func(cmd *cobra.Command, run func(context.Context, backups.App) error) error {
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				return run(ctx, backups.App{Places: a.Places, Settings: a.Settings, Store: a.Archive.Store})
			})(cmd, nil)
		},
		Reopen: func(ctx context.Context) (audit.Archive, func() error, error) {
			a, err := app.Open(ctx, app.Config{ConfigFile: c.configFile})
			if err != nil {
				return audit.Archive{}, nil, err
			}
			return a.Archive, a.Close, nil
		},
	})
}
