package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/door"
)

func (c *command) discoverCommand() *cobra.Command {
	return &cobra.Command{
		Use: `discover "MESSAGE"`, Short: "Show what would be shown for a message, and why", Example: `  ken discover "what changed in this repository lately"`, Args: args(cobra.MinimumNArgs(1)),
		RunE: c.with(func(ctx context.Context, a *app.App, given []string) error {
			message := strings.Join(given, " ")
			if strings.TrimSpace(message) == "" {
				return usageError{errors.New(`the message is empty; say what you want done: ken discover "search the web"`)}
			}
			sel, err := a.Door.Find(ctx, a.View(), message)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(sel)
			}
			c.printSelection(sel)
			return nil
		}),
	}
}

func (c *command) printSelection(sel door.Selection) {
	p := c.out
	if len(sel.Briefs) == 0 {
		p.linef("Nothing fits this message.")
	}
	for _, b := range sel.Briefs {
		p.linef("%s %s %s", bar(p, b.Score), p.style(bold, fmt.Sprintf("%.2f", b.Score)), b.Text)
		p.linef("    %s", p.style(dim, foreign(string(b.ID)+": "+strings.Join(b.Why, "; "))))
	}
	if len(sel.Skipped) > 0 && p.terminal {
		p.linef("\n%s", p.style(dim, fmt.Sprintf("%d more matched and were left out; --json says why", len(sel.Skipped))))
	}
}

// bar draws a score on a terminal.
func bar(p *printer, score float64) string {
	if !p.terminal {
		return "-"
	}
	const width = 10
	full := int(score*width + 0.5)
	return p.style(green, strings.Repeat("█", full)) + p.style(dim, strings.Repeat("░", width-full))
}
