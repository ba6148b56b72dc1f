// Package tokens has the commands for the tokens of agents: ken token.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/serve/auth"
)

// An App is what the commands need of the program once it is open.
type App struct {
	State string // the folder of the tokens

	// Remove removes the token of an agent, on all replicas too, and reports whether
	// there was one. CancelJobs cancels the unfinished jobs of an agent.
	Remove     func(ctx context.Context, name string) (bool, error)
	CancelJobs func(ctx context.Context, name string) (int, error)
}

// Config is what the commands need before that.
type Config struct {
	Out       *output.Printer
	JSON      *bool // the flag --json, read when a command runs
	PrintJSON func(any) error
	Args      func(cobra.PositionalArgs) cobra.PositionalArgs

	// With opens the program for a command.
	With func(cmd *cobra.Command, run func(context.Context, App) error) error
}

// Commands returns the commands of ken token.
func Commands(c Config) []*cobra.Command { return []*cobra.Command{c.add(), c.list(), c.remove()} }

func (c Config) with(run func(ctx context.Context, a App, given []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		return c.With(cmd, func(ctx context.Context, a App) error { return run(ctx, a, given) })
	}
}

func (c Config) add() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Short: "Print an agent's token; create it if it does not exist", Args: c.Args(cobra.ExactArgs(1)),
		Long: "Print an agent's token, and create it if it does not exist. The agent sends it to ken\n" +
			"serve as Authorization: Bearer TOKEN. Its calls count as yours, but it cannot approve\n" +
			"them. The audit log names the agent.",
		RunE: c.with(func(_ context.Context, a App, given []string) error {
			if err := os.MkdirAll(a.State, 0o700); err != nil {
				return err
			}
			token, err := auth.NamedAgent(a.State, given[0], false)
			if err != nil {
				return err
			}
			if *c.JSON {
				return c.PrintJSON(map[string]string{"name": given[0], "token": token})
			}
			c.Out.Linef("%s", token)
			return nil
		}),
	}
}

func (c Config) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agents that have a token", Args: c.Args(cobra.NoArgs),
		RunE: c.with(func(_ context.Context, a App, _ []string) error {
			agents, err := auth.Agents(a.State)
			if err != nil {
				return err
			}
			if *c.JSON {
				return c.PrintJSON(map[string]any{"agents": append([]auth.Agent{}, agents...)})
			}
			rows := [][]string{}
			for _, one := range agents {
				rows = append(rows, []string{one.Name, one.Made.Local().Format("2006-01-02 15:04"), one.File})
			}
			c.Out.Table([]output.Column{{Style: output.Bold}, {Style: output.Dim}, {Style: output.Dim, Grow: true}}, rows)
			return nil
		}),
	}
}

func (c Config) remove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove an agent's token; ken serve rejects it at once", Args: c.Args(cobra.ExactArgs(1)),
		Long: "Remove an agent's token; ken serve rejects it at once. Ken also cancels the\n" +
			"agent's unfinished jobs.",
		RunE: c.with(func(ctx context.Context, a App, given []string) error {
			there, err := a.Remove(ctx, given[0])
			if err != nil {
				return err
			}
			if !there {
				return &capability.Error{
					Kind: capability.NotFound, Op: "remove a token", Target: given[0],
					Err: errors.New("the agent has no token"), Fix: "`ken token list` lists the agents that have one",
				}
			}
			cancelled, err := a.CancelJobs(ctx, given[0])
			if err != nil {
				return fmt.Errorf("the token of %s is removed, but its jobs could not be cancelled: %w", given[0], err)
			}
			if *c.JSON {
				return c.PrintJSON(map[string]any{"removed": given[0], "cancelledJobs": cancelled})
			}
			c.Out.Linef("%s has no token any more", output.Line(given[0]))
			if cancelled > 0 {
				c.Out.Linef("cancelled %s that it had added", output.Plural(cancelled, "job"))
			}
			return nil
		}),
	}
}
