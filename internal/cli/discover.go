package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/discovering"
	"ken/internal/cli/output"
	"ken/internal/spelling"
)

func newDiscover(c *environment) *cobra.Command {
	return discovering.New(discovering.Config{
		Out: c.out, Err: c.err, JSON: &c.json, PrintJSON: c.printJSON, Usage: func(err error) error { return usageError{err} },
		Kinds: kindNames(), CheckFilter: checkFilter,
		With: func(cmd *cobra.Command, run func(context.Context, discovering.App) error) error {
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				return run(ctx, discovering.App{
					Door: a.Door, Vectors: a.Vectors, View: a.View, CheckAgent: func(name string) { c.checkAgent(a, name) },
				})
			})(cmd, nil)
		},
	})
}

// checkAgent warns about an agent that has no settings of its own, such as a
// misspelt one.
func (c *environment) checkAgent(a *app.App, name string) {
	if name == "" {
		return
	}
	if _, ok := a.Settings.Discovery.Agents[name]; ok {
		return
	}
	known := slices.Sorted(maps.Keys(a.Settings.Discovery.Agents))
	fmt.Fprintf(c.err, "ken: warning: discovery.agents has no agent %s, so the usual settings apply%s\n", output.Line(name), orMeant(name, known))
}

func orMeant(word string, known []string) string {
	if near := spelling.Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
