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
	"ken/internal/know/source"
)

// serverRow shows an MCP server among the extensions.
func serverRow(s app.ServerStand) []string {
	what := plural(s.Accepted, "tool")
	switch {
	case s.State == app.ServerUnlisted || s.First.IsZero():
		what = "never listed"
	case s.New+s.Changed > 0:
		what += fmt.Sprintf(", %d new and %d changed wait", s.New, s.Changed)
	}
	return []string{s.State, "mcp:" + s.Name, "", what, s.Place}
}

// printFailed says in full why servers cannot be used.
func (c *extensionCommand) printFailed(list []app.ServerStand) {
	for _, s := range list {
		for _, note := range s.Notes {
			c.out.linef("%s mcp:%s: %s", c.out.style(yellow, "note"), foreign(s.Name), foreign(note))
		}
		if s.Why == "" {
			continue
		}
		line := foreign(s.Why)
		if s.Fix != "" {
			line += "; " + foreign(s.Fix)
		}
		c.out.linef("%s mcp:%s: %s", c.out.style(reviewStyles[s.State], s.State), foreign(s.Name), line)
	}
}

// reviewServer shows the tools of a server that wait for a person.
func (c *extensionCommand) reviewServer(ctx context.Context, a *app.App, name string) error {
	r, err := a.ReviewServer(ctx, name)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(r)
	}
	c.printServer(r)
	if len(r.Waiting) > 0 {
		c.out.linef("to accept them: ken extension enable mcp:%s --digest %s", foreign(name), r.Digest)
	}
	return nil
}

func (c *extensionCommand) printServer(r app.ServerReview) {
	name := foreign(r.Server)
	switch {
	case r.Unlisted != "":
		c.out.linef("%s mcp:%s: %s", c.out.style(yellow, "not listed"), name, foreign(r.Unlisted))
	case len(r.Waiting) == 0:
		c.out.linef("Nothing waits at mcp:%s: its tools are what was accepted.", name)
	}
	if len(r.Waiting) == 0 {
		return
	}
	for _, w := range r.Waiting {
		c.out.linef("%s  %s", c.out.style(yellow, fmt.Sprintf("%-8s", w.State)), c.out.style(bold, foreign(w.Tool)))
		for _, d := range w.Differences {
			c.out.linef("    %s", strings.ReplaceAll(d.String(), "\n", "\n    "))
		}
		c.printFindings(r.Server, w.Tool, r.Findings[w.Tool])
	}
	c.out.linef("\n%s  %s", c.out.style(bold, "digest"), r.Digest)
}

// printFindings shows what the scan of texts has against a tool that waits.
func (c *extensionCommand) printFindings(server, tool string, found []capability.Finding) {
	held := false
	for _, f := range found {
		held = held || f.Severity == capability.Grave
		c.out.linef("    %s %s", c.out.style(red, "scan:"), foreign(f.String()))
	}
	if held {
		c.out.linef("    accepting it does not release it from that: ken catalog why %s", foreign(string(source.MCPID(server, tool))))
	}
}

// acceptServer switches a server on where it is off, and lets the tools that
// wait be used, once a person has seen them.
func (c *extensionCommand) acceptServer(ctx context.Context, a *app.App, name, digest, why string) error {
	on, err := a.SwitchServer(ctx, a.Principal, name, true, why)
	if err != nil {
		return err
	}
	if on {
		a.ListServers(ctx, name) // what waits is what it offers now
		if err := a.Reload(ctx); err != nil {
			return err
		}
		if !c.json {
			c.out.linef("mcp:%s is on", foreign(name))
		}
	}
	r, err := a.ReviewServer(ctx, name)
	if err != nil {
		return err
	}
	if len(r.Waiting) == 0 {
		if c.json {
			return c.printJSON(app.Acceptance{Server: name, Usable: []string{}, Held: map[string][]string{}})
		}
		c.printServer(r)
		return nil
	}
	if err := c.acceptShown(ctx, r, digest); err != nil {
		return err
	}
	done, err := a.AcceptTools(ctx, a.Principal, r)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(done)
	}
	if done.Others > 0 {
		c.out.linef("prompts, resources and templates of mcp:%s that were accepted: %d", foreign(name), done.Others)
	}
	if done.Others < done.Accepted {
		c.out.linef("%s of mcp:%s may be used now", plural(len(done.Usable), "tool"), foreign(name))
	}
	for _, id := range slices.Sorted(maps.Keys(done.Held)) {
		c.out.linef("%s %s stays in quarantine: %s; see ken catalog why %s", c.out.style(yellow, "held"), foreign(id), foreign(strings.Join(done.Held[id], "; ")), foreign(id))
	}
	return nil
}

// acceptShown makes sure that a person has seen what waits.
func (c *extensionCommand) acceptShown(ctx context.Context, r app.ServerReview, digest string) error {
	switch name := foreign(r.Server); {
	case digest == r.Digest:
		return nil
	case digest != "":
		return usageError{fmt.Errorf("what waits is not what --digest says; look again with ken extension review mcp:%s", name)}
	case !c.interactive():
		return usageError{fmt.Errorf("look at it with ken extension review mcp:%s, then say --digest with what that prints", name)}
	}
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
	return nil
}

// switchOff has a server not started any more.
func (c *extensionCommand) switchOff(ctx context.Context, a *app.App, name, why string) error {
	if name == "" {
		return usageError{errors.New("name the server, as in mcp:files")}
	}
	changed, err := a.SwitchServer(ctx, a.Principal, name, false, why)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"server": name, "on": false, "changed": changed})
	}
	if !changed {
		c.out.linef("mcp:%s was off already", foreign(name))
		return nil
	}
	c.out.linef("mcp:%s is off; ken extension enable mcp:%s switches it on again", foreign(name), foreign(name))
	return nil
}
