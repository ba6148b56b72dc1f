package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/govern/reload"
	"ken/internal/serve/auth"
)

// configCommand is ken config: it reads and changes ken.yaml.
type configCommand struct{ *environment }

func newConfig(env *environment) *cobra.Command {
	c := &configCommand{env}
	return group("config", "Read, change and check ken.yaml", c.get(), c.set(), c.unset(), c.check(), c.schema())
}

func (c *configCommand) settings() (config.Config, dirs.Places, error) {
	places, err := dirs.Here()
	if err != nil {
		return config.Config{}, places, err
	}
	cfg, err := config.Load(places, c.configFile)
	return cfg, places, err
}

func (c *configCommand) get() *cobra.Command {
	return &cobra.Command{
		Use: "get [KEY]", Short: "Print one setting or all, and where each was set", Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			cfg, _, err := c.settings()
			if err != nil {
				return err
			}
			if len(given) == 1 {
				return c.printSetting(cfg, given[0])
			}
			if c.json {
				return c.printJSON(map[string]any{"settings": cfg.Settings()})
			}
			var rows [][]string
			for _, s := range cfg.Settings() {
				rows = append(rows, []string{s.Key, s.Value, s.Origin})
			}
			c.out.Table([]output.Column{{Style: output.Bold}, {Grow: true}, {Style: output.Dim}}, rows)
			return nil
		},
	}
}

func (c *configCommand) printSetting(cfg config.Config, key string) error {
	value, origin, err := cfg.Explain(key)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]string{"key": key, "value": value, "origin": origin})
	}
	if c.out.Terminal {
		c.out.Linef("%s  %s", output.Line(value), c.out.Style(output.Dim, output.Line(origin)))
	} else {
		c.out.Linef("%s", output.Line(value))
	}
	return nil
}

func (c *configCommand) set() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "set KEY VALUE", Short: "Change one setting in your ken.yaml; the old file is saved as ken.yaml.bak", Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if all {
				return c.share(cmd, given[0], given[1], func(file string) error { return config.Set(file, given[0], given[1]) })
			}
			return c.change(cmd.Context(), given[0], given[1])
		},
	}
	sharedFlag(cmd, &all)
	return cmd
}

func sharedFlag(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVar(all, "shared", false, "for all replicas that have the same PostgreSQL as their store, within a second; goes over ken.yaml")
}

// share changes a setting for all replicas.
func (c *configCommand) share(cmd *cobra.Command, key, value string, edit func(file string) error) error {
	return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
		if value != "" {
			if err := a.Settings.CheckSet(key, value); err != nil {
				return err
			}
		}
		if err := a.Replicas.Change(ctx, key, config.Shown(key, value), edit); err != nil {
			return err
		}
		if c.json {
			return c.printJSON(map[string]any{"shared": true, "key": key, "value": config.Shown(key, value)})
		}
		if value == "" {
			c.out.Linef("%s is no longer set for all replicas", output.Line(key))
		} else {
			c.out.Linef("%s is now %s on all replicas", output.Line(key), output.Line(config.Shown(key, value)))
		}
		return nil
	})(cmd, nil)
}

// change sets one setting in the user's file, and says what does not work yet.
func (c *configCommand) change(ctx context.Context, key, value string) error {
	file, err := c.ownFile()
	if err != nil {
		return err
	}
	replaced := ""
	if now, _, err := c.settings(); err == nil { // if a file is wrong, Set reports it
		if err := now.CheckSet(key, value); err != nil {
			return err
		}
		if old, origin, err := now.Explain(key); err == nil && strings.HasPrefix(origin, file+":") && config.HasEntries(old) {
			replaced = old
		}
	}
	if err := config.Set(file, key, value); err != nil {
		return err
	}
	atOnce := reload.AppliesLive(config.WholeKey(key))
	doubt := c.doubt(ctx, key)
	if c.json {
		said := map[string]any{"file": file, "key": key, "value": config.Shown(key, value), "restart": !atOnce}
		if doubt != "" {
			said["warning"] = doubt
		}
		return c.printJSON(said)
	}
	c.out.Linef("%s: %s is now %s", output.Line(file), output.Line(key), output.Line(config.Shown(key, value)))
	if replaced != "" && replaced != config.Shown(key, value) {
		c.out.Linef("It replaces %s; %s has the old file.", output.Line(replaced), output.Line(file+".bak"))
	}
	if !atOnce {
		c.out.Linef("%s", c.out.Style(output.Dim, "Restart a running Ken to apply it."))
	}
	if doubt != "" {
		fmt.Fprintln(c.err, "ken: warning: "+output.Line(doubt))
	}
	return nil
}

func (c *configCommand) unset() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "unset KEY", Short: "Remove one setting from your ken.yaml, so that its default applies", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if all {
				return c.share(cmd, given[0], "", func(file string) error {
					_, err := config.Unset(file, given[0])
					return err
				})
			}
			file, err := c.ownFile()
			if err != nil {
				return err
			}
			had, err := config.Unset(file, given[0])
			if err != nil {
				return err
			}
			atOnce := reload.AppliesLive(config.WholeKey(given[0]))
			if c.json {
				return c.printJSON(map[string]any{"file": file, "key": given[0], "unset": had, "restart": had && !atOnce})
			}
			if !had {
				c.out.Linef("%s: %s is not set", output.Line(file), output.Line(given[0]))
				return nil
			}
			c.out.Linef("%s: %s is no longer set", output.Line(file), output.Line(given[0]))
			if !atOnce {
				c.out.Linef("%s", c.out.Style(output.Dim, "Restart a running Ken to apply it."))
			}
			return nil
		},
	}
	sharedFlag(cmd, &all)
	return cmd
}

// reach says why ken serve refuses these settings, with serve.addr as its address.
func reach(s config.Serve) error {
	host, _, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return nil // Load has checked it
	}
	return auth.CheckReach(s.Auth == config.AuthOff, config.Loopback(host), s.OIDC.Issuer != "", s.Hosts)
}

func (c *configCommand) schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print a JSON Schema of ken.yaml, for editors", Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err != nil {
				return err
			}
			c.out.Linef("%s", strings.TrimSuffix(string(schema), "\n"))
			return nil
		},
	}
}

// doubt returns what will not work with a key that was set, though it may be set
// like that: what is missing may come next.
func (c *configCommand) doubt(ctx context.Context, key string) string {
	switch {
	case strings.HasPrefix(key, "serve"):
		settings, _, err := c.settings()
		if err == nil {
			err = reach(settings.Serve)
		}
		if err != nil {
			return err.Error() + "; until this is fixed ken serve does not start"
		}
		return ""
	case strings.HasPrefix(key, "policy"):
		settings, _, err := c.settings()
		if err == nil {
			_, err = policy.Compile(settings.Policy) // it reads the files that policy.cedar names
		}
		if err != nil {
			return err.Error() + "; until this is fixed no call can be made"
		}
		return ""
	case key != "model" && key != "providers":
		return ""
	}
	a, err := app.Open(ctx, app.Config{ConfigFile: c.configFile, Catalogs: c.catalogs})
	if err != nil {
		return "" // the next command reports it
	}
	defer a.Close()
	return a.Models.Doubt(ctx, key)
}

// ownFile returns the file that the user's settings live in.
func (c *configCommand) ownFile() (string, error) {
	if c.configFile != "" {
		return c.configFile, nil
	}
	places, err := dirs.Here()
	if err != nil {
		return "", err
	}
	return config.File(places)
}

func (c *configCommand) check() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "List every error of the configuration", Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			settings, _, err := c.settings()
			if err == nil {
				_, err = policy.Compile(settings.Policy)
				err = errors.Join(err, reach(settings.Serve))
			}
			if err != nil {
				return fmt.Errorf("the configuration is refused:\n%w", err)
			}
			if c.json {
				return c.printJSON(map[string]bool{"ok": true})
			}
			c.out.Linef("%s", c.out.Style(output.Green, "the configuration is in order"))
			return nil
		},
	}
}
