package cli

import (
	"context"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/choosing"
	"ken/internal/secret"
	"ken/internal/talk/opener"
)

func newModel(c *environment) *cobra.Command {
	cfg := choosing.Config{
		Out: c.out, JSON: &c.json, PrintJSON: c.printJSON, Args: args, Usage: func(err error) error { return usageError{err} }, Interactive: c.interactive,
		ReadLine:   func(ctx context.Context) (string, error) { return readLine(ctx, c.in) },
		ReadSecret: func(name string) (secret.Value, error) { return (&secretCommand{c}).readSecret(name) },
		Set:        func(ctx context.Context, model string) error { return (&configCommand{c}).change(ctx, "model", model) },
		With: func(cmd *cobra.Command, model string, run func(context.Context, *opener.Opener) error) error {
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				if model != "" {
					a.UseModel(model)
				}
				return run(ctx, a.Models)
			})(cmd, nil)
		},
	}
	cmd := group("model", "Choose, test and list models", choosing.Commands(cfg)...)
	cmd.Long = "Show where a model can come from. At a terminal it then asks which one to use.\n" +
		"Servers of models on this machine are found by themselves (Ollama, LM Studio, llama.cpp, vLLM)."
	unknown := cmd.Args
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return nil
		}
		return unknown(cmd, given)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cfg.With(cmd, "", cfg.Overview) }
	return cmd
}
