package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"ken/internal/add"
	"ken/internal/add/addplan"
	"ken/internal/app"
	"ken/internal/cli/adding"
	"ken/internal/govern/extensions"
)

func newAdd(c *environment) *cobra.Command { return adding.NewAdd(c.adding()) }

func newRemove(c *environment) *cobra.Command { return adding.NewRemove(c.adding()) }

// adding returns what ken add and ken remove need of the program.
func (c *environment) adding() adding.Config {
	return adding.Config{
		Out: c.out, Err: c.err, JSON: &c.json, PrintJSON: c.printJSON, Usage: func(err error) error { return usageError{err} },
		Agree: c.agree,
		With: func(cmd *cobra.Command, run func(context.Context, addplan.App) error) error {
			c.serving = true // no server need be started for it
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				file, err := (&configCommand{environment: c}).ownFile()
				if err != nil {
					return err
				}
				return run(ctx, app.Adding(a, a.Principal, file, c.enableAdded))
			})(cmd, nil)
		},
	}
}

// enableAdded opens the program again, whose catalog has a package that was just
// added, and switches the package on.
func (c *environment) enableAdded(ctx context.Context, p *add.Package) (extensions.Extension, error) {
	a, err := app.Open(ctx, app.Config{ConfigFile: c.configFile})
	if err != nil {
		return extensions.Extension{}, err
	}
	x, err := app.EnableAdded(ctx, a, a.Principal, p, "added with ken add")
	return x, errors.Join(err, a.Close())
}
