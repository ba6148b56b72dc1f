package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/serve/auth"
)

// tokenCommand is ken token: it keeps the tokens of agents.
type tokenCommand struct{ *environment }

func newToken(env *environment) *cobra.Command {
	c := &tokenCommand{env}
	return group("token", "Give agents tokens of their own", c.add(), c.list(), c.remove())
}

func (c *tokenCommand) add() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Short: "Print the token of one agent, and make it if there is none", Args: args(cobra.ExactArgs(1)),
		Long: "Print the token of one agent, and make it if there is none. The agent sends it to\n" +
			"ken serve as Authorization: Bearer TOKEN. It works for you, cannot approve its own\n" +
			"calls, and the audit log has its name.",
		RunE: c.withApp(func(_ context.Context, a *app.App, given []string) error {
			if err := os.MkdirAll(a.Places.State, 0o700); err != nil {
				return err
			}
			token, err := auth.NamedAgent(a.Places.State, given[0], false)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]string{"name": given[0], "token": token})
			}
			c.out.linef("%s", token)
			return nil
		}),
	}
}

func (c *tokenCommand) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agents that have a token of their own", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(_ context.Context, a *app.App, _ []string) error {
			agents, err := auth.Agents(a.Places.State)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"agents": listOf(agents)})
			}
			rows := [][]string{}
			for _, one := range agents {
				rows = append(rows, []string{one.Name, one.Made.Local().Format("2006-01-02 15:04"), one.File})
			}
			c.out.table([]column{{style: bold}, {style: dim}, {style: dim, grow: true}}, rows)
			return nil
		}),
	}
}

func (c *tokenCommand) remove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove the token of one agent; ken serve refuses it at once", Args: args(cobra.ExactArgs(1)),
		RunE: c.withApp(func(_ context.Context, a *app.App, given []string) error {
			there, err := auth.RemoveAgent(a.Places.State, given[0])
			if err != nil {
				return err
			}
			if !there {
				return &capability.Error{
					Kind: capability.NotFound, Op: "remove a token", Target: given[0],
					Err: errors.New("this agent has no token of its own"), Fix: "`ken token list` lists those that have",
				}
			}
			if c.json {
				return c.printJSON(map[string]string{"removed": given[0]})
			}
			c.out.linef("%s has no token any more", foreign(given[0]))
			return nil
		}),
	}
}
