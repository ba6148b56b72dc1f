package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/serve/auth"
)

// tokenCommand is ken token: it keeps the tokens of agents.
type tokenCommand struct{ *environment }

func newToken(env *environment) *cobra.Command {
	c := &tokenCommand{env}
	return group("token", "Add, list and remove agent tokens for ken serve", c.add(), c.list(), c.remove())
}

func (c *tokenCommand) add() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Short: "Print an agent's token; create it if it does not exist", Args: args(cobra.ExactArgs(1)),
		Long: "Print an agent's token, and create it if it does not exist. The agent sends it to ken\n" +
			"serve as Authorization: Bearer TOKEN. Its calls count as yours, but it cannot approve\n" +
			"them. The audit log names the agent.",
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
			c.out.Linef("%s", token)
			return nil
		}),
	}
}

func (c *tokenCommand) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agents that have a token", Args: args(cobra.NoArgs),
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
			c.out.Table([]output.Column{{Style: output.Bold}, {Style: output.Dim}, {Style: output.Dim, Grow: true}}, rows)
			return nil
		}),
	}
}

func (c *tokenCommand) remove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove an agent's token; ken serve rejects it at once", Args: args(cobra.ExactArgs(1)),
		Long: "Remove an agent's token; ken serve rejects it at once. Ken also cancels the\n" +
			"agent's unfinished jobs.",
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			there, err := auth.RemoveAgent(a.Places.State, given[0])
			if err != nil {
				return err
			}
			if !there {
				return &capability.Error{
					Kind: capability.NotFound, Op: "remove a token", Target: given[0],
					Err: errors.New("the agent has no token"), Fix: "`ken token list` lists the agents that have one",
				}
			}
			cancelled, err := a.CancelJobsOf(ctx, given[0], a.Principal)
			if err != nil {
				return fmt.Errorf("the token of %s is removed, but its jobs could not be cancelled: %w", given[0], err)
			}
			if c.json {
				return c.printJSON(map[string]any{"removed": given[0], "cancelledJobs": cancelled})
			}
			c.out.Linef("%s has no token any more", output.Line(given[0]))
			if cancelled > 0 {
				c.out.Linef("cancelled %s that it had added", output.Plural(cancelled, "job"))
			}
			return nil
		}),
	}
}
