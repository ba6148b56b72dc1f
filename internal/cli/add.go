package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
	"ken/internal/app"
	"ken/internal/cli/adding"
	"ken/internal/config"
	"ken/internal/govern/extensions"
)

func newAdd(c *environment) *cobra.Command { return adding.NewAdd(c.adding()) }

func newRemove(c *environment) *cobra.Command { return adding.NewRemove(c.adding()) }

// adding returns what ken add and ken remove need of the program.
func (c *environment) adding() adding.Config {
	return adding.Config{
		Out: c.out, Err: c.err, JSON: &c.json, PrintJSON: c.printJSON, Usage: func(err error) error { return usageError{err} },
		Agree: c.agree, Enable: c.enableAdded,
		With: func(cmd *cobra.Command, run func(context.Context, adding.App) error) error {
			c.serving = true // no server need be started for it
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				in := app.AddingTo(a)
				file, err := (&configCommand{environment: c}).ownFile()
				if err != nil {
					return err
				}
				return run(ctx, adding.App{
					Places: in.Places(), Tools: in.Tools(), By: a.Principal, Catalog: a.Catalog, Extensions: a.Extensions, Networks: a.Settings.Sandbox.Prefixes(),
					HasSecret: func(name string) bool { return os.Getenv(name) != "" || a.Secrets.Has(name) },
					Standing:  in.Standing, Record: in.Record,
					Servers: adding.Servers{
						Config: in.Servers(), File: file, Defined: in.Defined, Narrow: in.Narrow, Try: in.Try, Unpin: in.Unpin,
						Configure: configureServer,
						Forget: func(file, name string) error {
							_, err := config.Unset(file, "mcp.servers."+name)
							return err
						},
					},
				})
			})(cmd, nil)
		},
	}
}

// configureServer writes the definition of an MCP server into a ken.yaml.
func configureServer(file, name string, d addmcp.Definition) error {
	text, err := json.Marshal(d) // which is YAML too
	if err != nil {
		return err
	}
	return config.Set(file, "mcp.servers."+name, string(text))
}

// enableAdded switches a package on that was just added, if it is the one that was
// shown.
func (c *environment) enableAdded(ctx context.Context, p *add.Package) (extensions.Extension, error) {
	a, err := app.Open(ctx, app.Config{ConfigFile: c.configFile})
	if err != nil {
		return extensions.Extension{}, err
	}
	x, err := a.Extensions.Find(ctx, p.ID, p.Folder())
	if err == nil && !p.Same(x.Manifest) {
		err = &capability.Error{
			Kind: capability.Conflict, Op: "enable extension", Target: p.ID, Err: errors.New("the content changed after it was shown"),
			Fix: "look at it with ken extension review " + p.ID,
		}
	}
	if err == nil {
		err = a.Extensions.Enable(ctx, a.Principal, x, "added with ken add")
	}
	return x, errors.Join(err, a.Close())
}
