package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/mcpservers/toolreview"
)

// serverRow shows an MCP server among the extensions.
func serverRow(s toolreview.Server) []string {
	what := output.Plural(s.Accepted, "tool")
	switch {
	case s.State == toolreview.Unlisted || s.First.IsZero():
		what = "never listed"
	case s.New+s.Changed > 0:
		what += fmt.Sprintf(", %d new and %d changed wait", s.New, s.Changed)
	}
	return []string{s.State, "mcp:" + s.Name, "", what, s.Place}
}

// printFailed says in full why servers cannot be used.
func (c *extensionCommand) printFailed(list []toolreview.Server) {
	for _, s := range list {
		for _, note := range s.Notes {
			c.out.Linef("%s mcp:%s: %s", c.out.Style(output.Yellow, "note"), output.Line(s.Name), output.Line(note))
		}
		if s.Why == "" {
			continue
		}
		line := output.Line(s.Why)
		if s.Fix != "" {
			line += "; " + output.Line(s.Fix)
		}
		c.out.Linef("%s mcp:%s: %s", c.out.Style(reviewStyles[s.State], s.State), output.Line(s.Name), line)
	}
}

// reviewServer shows the tools of a server that wait for a person.
func (c *extensionCommand) reviewServer(ctx context.Context, a *app.App, name string) error {
	r, err := a.ToolReviews.Review(ctx, name)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(r)
	}
	c.printServer(r)
	if len(r.Waiting) > 0 {
		c.out.Linef("to accept them: ken extension enable mcp:%s --digest %s", output.Line(name), r.Digest)
	}
	return nil
}

func (c *extensionCommand) printServer(r toolreview.Review) {
	name := output.Line(r.Server)
	switch {
	case r.Unlisted != "":
		c.out.Linef("%s mcp:%s: %s", c.out.Style(output.Yellow, "not listed"), name, output.Line(r.Unlisted))
	case len(r.Waiting) == 0:
		c.out.Linef("Nothing waits at mcp:%s: its tools are what was accepted.", name)
	}
	if len(r.Waiting) == 0 {
		return
	}
	for _, w := range r.Waiting {
		c.out.Linef("%s  %s", c.out.Style(output.Yellow, fmt.Sprintf("%-8s", w.State)), c.out.Style(output.Bold, output.Line(w.Tool)))
		for _, d := range w.Differences {
			c.out.Linef("    %s", strings.ReplaceAll(d.String(), "\n", "\n    "))
		}
		c.printFindings(r.Server, w.Tool, r.Findings[w.Tool])
	}
	c.out.Linef("\n%s  %s", c.out.Style(output.Bold, "digest"), r.Digest)
}

// printFindings shows what the scan of texts has against a tool that waits.
func (c *extensionCommand) printFindings(server, tool string, found []capability.Finding) {
	held := false
	for _, f := range found {
		held = held || f.Severity == capability.Grave
		c.out.Linef("    %s %s", c.out.Style(output.Red, "scan:"), output.Line(f.String()))
	}
	if held {
		c.out.Linef("    accepting it does not release it from that: ken catalog why %s", output.Line(string(mcptools.ID(server, tool))))
	}
}

// acceptServer switches a server on where it is off, and lets the tools that
// wait be used, once a person has seen them.
func (c *extensionCommand) acceptServer(ctx context.Context, a *app.App, name, digest, why string) error {
	on, err := a.Servers.Switch(ctx, a.Principal, name, true, why)
	if err != nil {
		return err
	}
	if on {
		a.Servers.List(ctx, name) // what waits is what it offers now
		if err := a.Catalog.Load(ctx); err != nil {
			return err
		}
		if !c.json {
			c.out.Linef("mcp:%s is on", output.Line(name))
		}
	}
	r, err := a.ToolReviews.Review(ctx, name)
	if err != nil {
		return err
	}
	if len(r.Waiting) == 0 {
		if c.json {
			return c.printJSON(toolreview.Acceptance{Server: name, Usable: []string{}, Held: map[string][]string{}})
		}
		c.printServer(r)
		return nil
	}
	if err := c.acceptShown(ctx, r, digest); err != nil {
		return err
	}
	done, err := a.ToolReviews.Accept(ctx, a.Principal, r)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(done)
	}
	if done.Others > 0 {
		c.out.Linef("prompts, resources and templates of mcp:%s that were accepted: %d", output.Line(name), done.Others)
	}
	if done.Others < done.Accepted {
		c.out.Linef("%s of mcp:%s may be used now", output.Plural(len(done.Usable), "tool"), output.Line(name))
	}
	for _, id := range slices.Sorted(maps.Keys(done.Held)) {
		c.out.Linef("%s %s stays in quarantine: %s; see ken catalog why %s", c.out.Style(output.Yellow, "held"), output.Line(id), output.Line(strings.Join(done.Held[id], "; ")), output.Line(id))
	}
	return nil
}

// acceptShown makes sure that a person has seen what waits.
func (c *extensionCommand) acceptShown(ctx context.Context, r toolreview.Review, digest string) error {
	switch name := output.Line(r.Server); {
	case digest == r.Digest:
		return nil
	case digest != "":
		return usageError{fmt.Errorf("the server does not match --digest; review it again with ken extension review mcp:%s", name)}
	case !c.interactive():
		return usageError{fmt.Errorf("run ken extension review mcp:%s, then pass the digest that it prints with --digest", name)}
	}
	c.printServer(r)
	fmt.Fprintf(c.out, "\n%s [y/N]: ", c.out.Style(output.Yellow, "Accept them?"))
	line, err := readLine(ctx, c.in)
	if err != nil {
		return err
	}
	if s := strings.ToLower(strings.TrimSpace(line)); s != "y" && s != "yes" {
		fmt.Fprintln(c.err, "ken: they stay in quarantine")
		return errSilent
	}
	return nil
}

// switchOff has a server not started any more.
func (c *extensionCommand) switchOff(ctx context.Context, a *app.App, name, why string) error {
	if name == "" {
		return usageError{errors.New("name the server, as in mcp:files")}
	}
	changed, err := a.Servers.Switch(ctx, a.Principal, name, false, why)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"server": name, "on": false, "changed": changed})
	}
	if !changed {
		c.out.Linef("mcp:%s was off already", output.Line(name))
		return nil
	}
	c.out.Linef("mcp:%s is off; ken extension enable mcp:%s switches it on again", output.Line(name), output.Line(name))
	return nil
}
