package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/config"
	"ken/internal/untrusted"
)

// An environment holds what all commands share: where to read and print, and the
// flags that every command has.
type environment struct {
	out *output.Printer
	err io.Writer
	in  io.Reader

	progress output.Progress

	configFile string
	catalogs   []string
	json       bool
	serving    bool // servers may appear while it runs
	oneCall    bool // it makes one call of a person
	stays      bool // it makes calls for others until it is told to end
}

// open builds the program and loads the catalog. It waits for the MCP servers that
// targets belong to.
func (c *environment) open(ctx context.Context, targets ...string) (*app.App, error) {
	var handler slog.Handler = slog.NewTextHandler(c.err, nil)
	if output.Screen(c.err) != nil {
		handler = output.Notes(c.err)
	}
	return app.Open(ctx, app.Config{
		ConfigFile: c.configFile, Catalogs: c.catalogs, Log: slog.New(handler), Observe: c.progress.Observe,
		Servers: !c.serving, Briefly: true, Targets: targets, OneCall: c.oneCall, Stays: c.stays,
	})
}

// working shows on standard error, if that is a terminal, what is done until there
// is output or end is called.
func (c *environment) working(what string) (end func()) {
	return c.progress.Work(output.Screen(c.err), what)
}

// withApp runs a command that needs the program.
func (c *environment) withApp(run func(ctx context.Context, a *app.App, given []string) error) func(*cobra.Command, []string) error {
	return c.withOpen(run, func([]string) []string { return nil })
}

// withTarget is withApp for a command whose first argument is a capability.
func (c *environment) withTarget(run func(ctx context.Context, a *app.App, given []string) error) func(*cobra.Command, []string) error {
	return c.withOpen(run, func(given []string) []string { return given[:min(1, len(given))] })
}

func (c *environment) withOpen(run func(ctx context.Context, a *app.App, given []string) error, targets func(given []string) []string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		a, err := c.open(cmd.Context(), targets(given)...)
		if err != nil {
			return err
		}
		c.mention(cmd, a)
		return errors.Join(run(cmd.Context(), a, given), a.Close())
	}
}

// mention says on the side that something is wrong with the catalog, where the
// command itself does not.
func (c *environment) mention(cmd *cobra.Command, a *app.App) {
	if cmd.Name() == "lint" || cmd.Name() == "doctor" || c.json {
		return
	}
	if n := a.Catalog.Snapshot().Stats().Errors; n > 0 {
		fmt.Fprintf(c.err, "ken: %s in the catalog; see ken catalog lint\n", output.Plural(n, "error"))
	}
}

// printJSON prints one document and nothing else.
func (c *environment) printJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// listOf returns a list that is never nil, which JSON would show as null.
func listOf[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// explain says what went wrong: in words, and with --json as the one document
// that was asked for.
func (c *environment) explain(err error) {
	fmt.Fprintln(c.err, "ken:", untrusted.Terminal(err.Error()))
	if !c.json {
		return
	}
	failure := map[string]any{"message": err.Error(), "status": status(err), "kind": capability.KindOf(err).String()}
	if status(err) == exitUsage {
		failure["kind"] = "usage"
	}
	var refused *config.Error
	if errors.As(err, &refused) {
		failure["kind"], failure["problems"] = "invalid", refused.Problems
	}
	_ = c.printJSON(map[string]any{"error": failure}) // there is nowhere else to say it
}
