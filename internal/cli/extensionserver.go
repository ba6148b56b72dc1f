package cli

import (
	"context"
	"fmt"
	"strings"

	"ken/internal/app"
	"ken/internal/govern/pin"
	"ken/internal/govern/review"
)

// serverRow shows an MCP server among the extensions.
func serverRow(s pin.Server) []string {
	state, what := string(review.Enabled), plural(s.Accepted, "tool")
	if s.New+s.Changed > 0 {
		state = string(review.Differs)
		what += fmt.Sprintf(", %d new and %d changed wait", s.New, s.Changed)
	}
	return []string{state, "mcp:" + foreign(s.Name), "", what, foreign(s.Place)}
}

// reviewServer shows the tools of a server that wait for a person.
func (c *command) reviewServer(ctx context.Context, a *app.App, name string) error {
	r, err := a.ReviewServer(ctx, name)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(r)
	}
	c.printServer(r)
	return nil
}

func (c *command) printServer(r app.ServerReview) {
	if len(r.Waiting) == 0 {
		c.out.linef("Nothing waits at mcp:%s: its tools are what was accepted.", foreign(r.Server))
		return
	}
	for _, w := range r.Waiting {
		c.out.linef("%s  %s", c.out.style(yellow, fmt.Sprintf("%-8s", w.State)), c.out.style(bold, foreign(w.Tool)))
		for _, d := range w.Differences {
			c.out.linef("    %s", strings.ReplaceAll(d.String(), "\n", "\n    "))
		}
	}
	c.out.linef("\n%s  %s", c.out.style(bold, "digest"), r.Digest)
}

// acceptServer lets the tools that wait be used, once a person has seen them.
func (c *command) acceptServer(ctx context.Context, a *app.App, name, digest string) error {
	r, err := a.ReviewServer(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case len(r.Waiting) == 0:
		if !c.json {
			c.printServer(r)
		}
	case digest != "" && digest != r.Digest:
		return usageError{fmt.Errorf("what waits is not what --digest says; look again with ken extension review mcp:%s", foreign(name))}
	case digest == "" && !c.interactive():
		return usageError{fmt.Errorf("look at it with ken extension review mcp:%s, then say --digest with what that prints", foreign(name))}
	case digest == "":
		c.printServer(r)
		fmt.Fprintf(c.out, "\n%s [y/N]: ", c.out.style(yellow, "Accept them?"))
		line, err := readLine(ctx, c.in)
		if err != nil {
			return err
		}
		if s := strings.ToLower(strings.TrimSpace(line)); s != "y" && s != "yes" {
			fmt.Fprintln(c.err, "ken: they stay in quarantine")
			return errSilent
		}
	}
	if len(r.Waiting) > 0 {
		if err := a.AcceptTools(ctx, r); err != nil {
			return err
		}
	}
	if c.json {
		return c.printJSON(map[string]any{"server": name, "accepted": len(r.Waiting)})
	}
	if len(r.Waiting) > 0 {
		c.out.linef("%s of mcp:%s may be used", plural(len(r.Waiting), "tool"), foreign(name))
	}
	return nil
}
