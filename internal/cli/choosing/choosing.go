// Package choosing has the commands of ken model.
package choosing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/cli/output"
	"ken/internal/secret"
	"ken/internal/talk/opener"
)

// Config is what the commands work with. All fields are required.
type Config struct {
	Out       *output.Printer
	JSON      *bool
	PrintJSON func(any) error
	Args      func(cobra.PositionalArgs) cobra.PositionalArgs
	Usage     func(error) error // makes an error a mistake in how the program was called

	// With runs a command with what opens models. With a name, that model answers
	// instead of the one in ken.yaml.
	With func(cmd *cobra.Command, model string, run func(context.Context, *opener.Opener) error) error

	Interactive func() bool
	ReadLine    func(context.Context) (string, error)
	ReadSecret  func(name string) (secret.Value, error)
	Set         func(ctx context.Context, model string) error // writes ken.yaml
}

// Commands returns the commands of ken model.
func Commands(c Config) []*cobra.Command {
	return []*cobra.Command{c.list(), c.test(), c.set(), c.key()}
}

// Overview prints the providers, and lets a person at a terminal choose a model of
// this machine.
func (c Config) Overview(ctx context.Context, m *opener.Opener) error {
	choices := m.Choices(ctx)
	slices.SortStableFunc(choices, func(a, b opener.Choice) int { return rank(a) - rank(b) })
	if *c.JSON {
		return c.PrintJSON(map[string]any{"model": m.Name(), "providers": choices})
	}
	if name := m.Name(); name != "" {
		c.Out.Linef("The model is %s.", c.Out.Style(output.Bold, output.Line(name)))
	} else {
		c.Out.Linef("No model is chosen yet.")
	}
	var rows [][]string
	var local []opener.Offered
	for _, p := range choices {
		rows = append(rows, []string{p.Name, standing(p)})
		local = append(local, p.Models...)
	}
	c.Out.Table([]output.Column{{Style: output.Bold}, {Grow: true}}, rows)
	if len(local) == 0 || !c.Interactive() {
		c.Out.Linef("%s", c.Out.Style(output.Dim, "ken model list PROVIDER lists models and prices; ken model key PROVIDER stores a key; ken model set PROVIDER/NAME chooses."))
		return nil
	}
	for i, m := range local {
		c.Out.Linef("%3d. %s", i+1, output.Line(m.Ref))
	}
	fmt.Fprintf(c.Out, "%s ", c.Out.Style(output.Yellow, "Number of the model to use (Enter: none):"))
	line, err := c.ReadLine(ctx)
	if err != nil {
		return err
	}
	if line = strings.TrimSpace(line); line == "" {
		return nil
	}
	n, err := strconv.Atoi(line)
	if err != nil || n < 1 || n > len(local) {
		return c.Usage(fmt.Errorf("%q is not a number from 1 to %d", output.Line(line), len(local)))
	}
	return c.Set(ctx, local[n-1].Ref)
}

// rank puts what can be used at once first: models of this machine, then providers
// with a key.
func rank(p opener.Choice) int {
	switch {
	case p.Answers:
		return 0
	case !p.Local && (p.Key == "" || p.KeySet != ""):
		return 1
	case !p.Local:
		return 2
	}
	return 3
}

// standing says how a provider stands.
func standing(p opener.Choice) string {
	switch {
	case p.Answers:
		return fmt.Sprintf("runs on this machine, with %s", output.Plural(len(p.Models), "model"))
	case p.Local:
		return "not running at " + p.URL
	case p.Key == "":
		return "at " + p.URL
	case p.KeySet == "environment":
		return "key from the variable " + p.Key
	case p.KeySet != "":
		return "key stored as " + p.Key
	}
	return "needs a key: ken model key " + p.Name
}

func (c Config) list() *cobra.Command {
	return &cobra.Command{
		Use: "list [PROVIDER]", Short: "List the models of a provider and their prices; without one, those that run on this machine", Args: c.Args(cobra.MaximumNArgs(1)),
		Example: "  ken model list\n  ken model list anthropic",
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.With(cmd, "", func(ctx context.Context, m *opener.Opener) error {
				if len(given) == 0 {
					return c.listLocal(ctx, m)
				}
				list, err := m.Offers(ctx, given[0], secret.Value{})
				if err != nil {
					return err
				}
				return c.printOffers(list)
			})
		},
	}
}

// listLocal lists the models of this machine, and says whose else there are.
func (c Config) listLocal(ctx context.Context, m *opener.Opener) error {
	var list []opener.Offered
	var others []string
	for _, p := range m.Choices(ctx) {
		list = append(list, p.Models...)
		if !p.Local {
			others = append(others, p.Name)
		}
	}
	if err := c.printOffers(list); err != nil || *c.JSON {
		return err
	}
	if len(list) == 0 {
		c.Out.Linef("No model runs on this machine.")
	}
	c.Out.Linef("%s", c.Out.Style(output.Dim, "ken model list PROVIDER lists those of "+output.Line(strings.Join(others, ", "))+"."))
	return nil
}

// printOffers prints models with their prices.
func (c Config) printOffers(list []opener.Offered) error {
	if *c.JSON {
		return c.PrintJSON(map[string]any{"models": list})
	}
	var rows [][]string
	for _, m := range list {
		price := "price not known"
		switch {
		case m.Priced:
			price = fmt.Sprintf("$%g in, $%g out for a million tokens", m.Input, m.Output)
		case m.Local:
			price = "on this machine, no price"
		}
		rows = append(rows, []string{m.Ref, price})
	}
	c.Out.Table([]output.Column{{Style: output.Bold}, {Style: output.Dim, Grow: true}}, rows)
	return nil
}

func (c Config) test() *cobra.Command {
	return &cobra.Command{
		Use: "test [PROVIDER/NAME]", Short: "Check that a model answers, without a paid request", Args: c.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			model := ""
			if len(given) == 1 {
				model = given[0]
			}
			return c.With(cmd, model, c.reach)
		},
	}
}

// reach says whether the model answers.
func (c Config) reach(ctx context.Context, m *opener.Opener) error {
	text, err := m.Reach(ctx)
	switch {
	case err != nil:
		return err
	case text == "":
		return m.Check()
	case *c.JSON:
		return c.PrintJSON(map[string]any{"model": m.Name(), "answers": true})
	}
	c.Out.Linef("%s", output.Line(text))
	return nil
}

func (c Config) set() *cobra.Command {
	return &cobra.Command{
		Use: "set PROVIDER/NAME", Short: "Use this model in conversations", Args: c.Args(cobra.ExactArgs(1)), Example: "  ken model set ollama/qwen3",
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.Set(cmd.Context(), given[0])
		},
	}
}

func (c Config) key() *cobra.Command {
	return &cobra.Command{
		Use: "key PROVIDER", Short: "Test a provider's key and store it, encrypted; it is asked for, or read from standard input", Args: c.Args(cobra.ExactArgs(1)),
		Example: "  ken model key anthropic",
		RunE: func(cmd *cobra.Command, given []string) error {
			return c.With(cmd, "", func(ctx context.Context, m *opener.Opener) error {
				v, err := c.ReadSecret("the key of " + given[0])
				if err != nil {
					return err
				}
				list, err := m.SetKey(ctx, given[0], v)
				if err != nil {
					return err
				}
				if !*c.JSON {
					c.Out.Linef("%s accepts the key; it is stored, encrypted. Its models:", output.Line(given[0]))
				}
				return c.printOffers(list)
			})
		},
	}
}
