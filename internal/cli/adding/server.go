package adding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/add/addplan"
	"ken/internal/cli/output"
)

// server adds an MCP server.
func (c *addCommand) server(ctx context.Context, a addplan.App) (err error) {
	q := c.servers
	q.From, q.Name = c.request.From, c.request.Name
	p, err := a.ReadServer(ctx, q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if !*c.JSON {
		c.printServer(p)
	}
	if c.dry {
		if *c.JSON {
			return c.PrintJSON(p)
		}
		c.Out.Linef("Nothing was changed.")
		return nil
	}
	if name := p.Unset(); name != "" {
		return &capability.Error{Kind: capability.Unavailable, Op: "add MCP server", Target: p.Name, Err: fmt.Errorf("the secret %s is not set", name), Fix: "ken secret set " + name + ", then add it again"}
	}
	if ok, err := c.try(ctx, p); err != nil || !ok {
		return err
	}
	if ok, err := c.Agree(ctx, c.yes, "Add it?"); err != nil || !ok {
		return err
	}
	if err := p.Add(ctx); err != nil {
		return err
	}
	if *c.JSON {
		return c.PrintJSON(p)
	}
	c.Out.Linef("%s mcp.servers.%s in %s", c.Out.Style(output.Green, "added:"), p.Name, output.Line(p.File))
	switch {
	case p.Login:
		c.Out.Linef("next: ken login %s", p.Name)
	case len(p.Tools) > 0:
		if i := slices.IndexFunc(p.Tools, func(t addplan.ServerTool) bool { return t.Decision == "allow" }); i >= 0 {
			id := output.Line(string(p.Tools[i].ID))
			c.Out.Linef("next: ken catalog show %s, then ken run %s '{}'", id, id)
			break
		}
		c.Out.Linef("next: ken catalog show %s", output.Line(string(p.Tools[0].ID)))
	}
	return nil
}

// try starts the server once, after a yes, and shows what it offers.
func (c *addCommand) try(ctx context.Context, p *addplan.Server) (bool, error) {
	question := "Start it once, in the sandbox profile " + p.Definition.Profile + "?"
	if p.Definition.URL != "" {
		question = "Connect to it once?"
	}
	if ok, err := c.Agree(ctx, c.yes, question); err != nil || !ok {
		return false, err
	}
	if err := p.Try(ctx); err != nil {
		return false, err
	}
	if p.Failed != "" && p.Definition.Profile == "confined" && c.servers.Profile == "" && !c.yes {
		c.fact("failed", output.Line(p.Failed))
		ok, err := c.Agree(ctx, false, "It does not start confined. Start it with the profile imported, which has your files and the network?")
		if err != nil || !ok {
			return false, err
		}
		p.Widen()
		if err := p.Try(ctx); err != nil {
			return false, err
		}
	}
	if p.Login {
		if !*c.JSON {
			c.fact("login", "it wants one before it lists its tools: ken login "+output.Line(p.Name))
		}
		return true, nil
	}
	if p.Failed != "" {
		fix := p.FailedFix
		if p.Definition.Profile == "confined" {
			fix = "give it what it needs with --host HOST, --read PATH, --write PATH or --env NAME, or add --profile imported, with which it has your files and the network"
		}
		return false, &capability.Error{Kind: capability.Unavailable, Op: "start MCP server", Target: p.Name, Err: fmt.Errorf("server was tried once and failed, so nothing was added: %s", p.Failed), Fix: fix}
	}
	if !*c.JSON {
		c.printTools(p)
	}
	return true, nil
}

func (c *addCommand) printServer(p *addplan.Server) {
	line := func(name, text string) {
		if text != "" {
			c.fact(name, output.Line(text))
		}
	}
	line("MCP server", p.Name)
	line("from", p.From)
	line("says", strings.TrimSpace(p.Title+"  "+p.Description))
	line("package", p.Package)
	line("replaces", p.Replaces)
	d := p.Definition
	if d.Command != "" {
		line("command", strings.Join(append([]string{d.Command}, d.Args...), " "))
	}
	line("address", d.URL)
	for _, kind := range []struct {
		name string
		list map[string]string
	}{{"variable", d.Env}, {"header", d.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(kind.list)) {
			line(kind.name, name+"="+kind.list[name])
		}
	}
	switch d.Profile {
	case "confined":
		line("profile", "confined: it has its own folder and what stands here")
		line("reads", strings.Join(d.Read, ", "))
		line("writes", strings.Join(d.Write, ", "))
		hosts := strings.Join(d.Hosts, ", ")
		if hosts == "" {
			hosts = "none; --host HOST opens one"
		}
		line("hosts", hosts)
	case "imported":
		c.fact("profile", c.Out.Style(output.Yellow, "imported: it has your files, except Ken's own, and the network"))
	}
	for _, s := range p.Secrets {
		state := c.Out.Style(output.Yellow, "not set") + ": ken secret set " + output.Line(s.Name)
		if s.Set {
			state = "set"
		}
		text := output.Line(s.Name) + "  " + state
		if s.Description != "" {
			text += "  (" + output.Line(s.Description) + ")"
		}
		c.fact("secret", text)
	}
	for _, note := range p.Notes {
		c.fact("note", c.Out.Style(output.Yellow, output.Line(note)))
	}
	line("digest", p.Digest)
}

func (c *addCommand) printTools(p *addplan.Server) {
	var names []string
	held := 0
	for _, t := range p.Tools {
		names = append(names, strings.TrimPrefix(string(t.ID), "mcp:"+p.Name+"/"))
		if t.Findings > 0 {
			held++
		}
	}
	c.fact("started", "it lists "+output.Plural(len(p.Tools), "tool"))
	if len(names) > 0 {
		c.fact("tools", output.Line(shortened(names)))
	}
	words := map[string]string{"allow": "run without asking", "ask": "ask first", "deny": "are denied"}
	if len(p.Tools) > 0 {
		c.fact("rules", countBy(p.Tools, func(t addplan.ServerTool) string { return words[t.Decision] }))
	}
	if held > 0 {
		c.fact("quarantine", output.Plural(held, "tool")+" with suspicious text; ken catalog lint names them once it is added")
	}
}
