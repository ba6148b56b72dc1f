package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/secret"
)

// secretCommand is ken secret: it keeps secrets.
type secretCommand struct{ *environment }

func newSecret(env *environment) *cobra.Command {
	c := &secretCommand{env}
	return group("secret", "Set, list and remove secrets for capabilities", c.set(), c.list(), c.remove())
}

func (c *secretCommand) set() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Store a secret; its value is read from standard input", Args: args(cobra.ExactArgs(1)),
		Example: "  ken secret set SERPER_API_KEY          (asks, and shows nothing)\n  ken secret set SERPER_API_KEY < key.txt",
		RunE: c.withApp(func(_ context.Context, a *app.App, given []string) error {
			if err := secret.CheckName(given[0]); err != nil { // before the value is asked for
				return err
			}
			v, err := c.readSecret(given[0])
			if err != nil {
				return err
			}
			if err := a.Secrets.Set(given[0], v); err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"set": given[0]})
			}
			c.out.Linef("%s is stored, encrypted, in %s", output.Line(given[0]), output.Line(a.Places.Home))
			return nil
		}),
	}
}

func (c *secretCommand) readSecret(name string) (secret.Value, error) {
	f, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return secret.ReadValue(c.in)
	}
	fmt.Fprintf(c.err, "Value of %s: ", output.Line(name))
	typed, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(c.err)
	if err != nil {
		return secret.Value{}, err
	}
	return secret.ReadValue(strings.NewReader(string(typed)))
}

func (c *secretCommand) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the names of stored secrets", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(_ context.Context, a *app.App, _ []string) error {
			items, err := a.Secrets.List()
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"secrets": listOf(items)})
			}
			rows := [][]string{}
			for _, i := range items {
				note := i.Unguarded
				if i.Shadowed {
					note = "the environment's variable of this name comes first"
				}
				rows = append(rows, []string{i.Name, i.Set.Local().Format("2006-01-02 15:04"), note})
			}
			c.out.Table([]output.Column{{Style: output.Bold}, {Style: output.Dim}, {Style: output.Yellow, Grow: true}}, rows)
			return nil
		}),
	}
}

func (c *secretCommand) remove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a secret", Args: args(cobra.ExactArgs(1)),
		RunE: c.withApp(func(_ context.Context, a *app.App, given []string) error {
			if err := a.Secrets.Remove(given[0]); err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"removed": given[0]})
			}
			c.out.Linef("%s is forgotten", output.Line(given[0]))
			return nil
		}),
	}
}
