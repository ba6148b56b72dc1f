package adding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/add/addmcp"
	"ken/internal/cli/output"
)

// Servers is what is needed to add and remove MCP servers.
type Servers struct {
	Config addmcp.Config
	File   string // the ken.yaml that definitions are written into

	Defined   func(name string) string // where a server of that name is defined, or ""
	Narrow    func(name string, d addmcp.Definition) (_ addmcp.Definition, against string)
	Try       func(ctx context.Context, name, file string, d addmcp.Definition) (*addmcp.Trial, error)
	Unpin     func(ctx context.Context, name, file string) error
	Configure func(file, name string, d addmcp.Definition) error // writes a definition
	Forget    func(file, name string) error                      // takes it away
}

// serverOptions are the flags of ken add that are about MCP servers.
type serverOptions struct {
	registry           string
	profile            string
	env                []string
	read, write, hosts []string
	args               []string // after --
}

// isServer reports whether an argument of ken add names an MCP server.
func isServer(given string) bool {
	if !isDocument(given) {
		return addmcp.Names(given)
	}
	data, err := os.ReadFile(given)
	return err == nil && strings.EqualFold(filepath.Ext(given), ".json") && addmcp.LooksLikeEntry(data)
}

// A serverPlan is what ken add --json prints of an MCP server.
type serverPlan struct {
	Kind        string            `json:"kind"`
	Name        string            `json:"name"`
	From        string            `json:"from"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Package     string            `json:"package,omitempty"`
	Digest      string            `json:"digest,omitempty"`
	Definition  addmcp.Definition `json:"definition"`
	Secrets     []addmcp.Secret   `json:"secrets"`
	Notes       []string          `json:"notes"`
	Replaces    string            `json:"replaces,omitempty"` // the package that was added before
	Tools       []serverTool      `json:"tools"`
	Login       bool              `json:"login,omitempty"` // it wants one before it lists its tools
	Added       bool              `json:"added"`
	File        string            `json:"file"`
}

type serverTool struct {
	ID       capability.ID `json:"id"`
	Decision string        `json:"decision"` // allow, ask or deny
	Rule     string        `json:"rule,omitempty"`
	Findings int           `json:"findings,omitempty"`
}

// server adds an MCP server.
func (c *addCommand) server(ctx context.Context, a App) (err error) {
	cfg := a.Servers.Config
	if c.servers.registry != "" {
		cfg.Registry = c.servers.registry
	}
	var before addmcp.Added
	s, err := addmcp.Read(ctx, cfg, addmcp.Request{
		From: c.request.From, Name: c.request.Name, Args: c.servers.args, Env: c.servers.env,
		Taken: func(name string) (err error) {
			before, err = replaced(a, name)
			return err
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p := &serverPlan{
		Kind: "server", Name: s.Name, From: s.From, Title: s.Title, Description: s.Description, Package: s.Package, Digest: s.Digest,
		Definition: s.Definition, Secrets: listOf(s.Secrets), Notes: listOf(s.Notes), Replaces: before.Package, Tools: []serverTool{}, File: a.Servers.File,
	}
	if err := c.hold(a, p); err != nil {
		return err
	}
	if !*c.JSON {
		c.printServer(p)
	}
	for i := range p.Secrets {
		if name := p.Secrets[i].Name; !p.Secrets[i].Set && !c.dry {
			return &capability.Error{Kind: capability.Unavailable, Op: "add MCP server", Target: s.Name, Err: fmt.Errorf("the secret %s is not set", name), Fix: "ken secret set " + name + ", then add it again"}
		}
	}
	if c.dry {
		return c.unchanged(p)
	}
	t, ok, err := c.try(ctx, a, p)
	if err != nil || !ok {
		return err
	}
	if ok, err := c.Agree(ctx, c.yes, "Add it?"); err != nil || !ok {
		return err
	}
	return c.addServer(ctx, a, s, p, t)
}

// replaced returns the server of a name that was added before. If another server
// has the name, it returns an error.
func replaced(a App, name string) (addmcp.Added, error) {
	before, again := addmcp.Find(a.Servers.Config, name)
	if at := a.Servers.Defined(name); at != "" && !again {
		return before, &capability.Error{Kind: capability.Conflict, Err: fmt.Errorf("%s has a server named %s", at, name), Fix: "choose another name with --name"}
	}
	return before, nil
}

func (c *addCommand) unchanged(p *serverPlan) error {
	if *c.JSON {
		return c.PrintJSON(p)
	}
	c.Out.Linef("Nothing was changed.")
	return nil
}

// hold chooses the sandbox profile: the one that was named, or else the narrowest
// that the definition allows.
func (c *addCommand) hold(a App, p *serverPlan) error {
	for i := range p.Secrets {
		p.Secrets[i].Set = a.HasSecret(p.Secrets[i].Name)
	}
	o := c.servers
	wider := len(o.read)+len(o.write)+len(o.hosts) > 0
	switch {
	case p.Definition.URL != "" && (o.profile != "" || wider):
		return c.Usage(errors.New("a remote server runs elsewhere: --profile, --read, --write and --host are for programs"))
	case p.Definition.URL != "":
		return nil
	case o.profile == "imported" && wider:
		return c.Usage(errors.New("--read, --write and --host are for --profile confined"))
	case o.profile == "imported":
		p.Definition.Profile = o.profile
		return nil
	case o.profile != "" && o.profile != "confined":
		return c.Usage(fmt.Errorf("--profile %q: use confined or imported", o.profile))
	}
	narrow, against := a.Servers.Narrow(p.Name, p.Definition)
	if against != "" {
		return &capability.Error{
			Kind: capability.Invalid, Op: "confine MCP server", Target: p.Name, Err: errors.New(against),
			Fix: "change its arguments, or add --profile imported, with which it has your files and the network",
		}
	}
	for _, list := range []struct {
		to    *[]string
		given []string
	}{{&narrow.Read, o.read}, {&narrow.Write, o.write}} {
		for _, path := range list.given {
			full, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			*list.to = append(*list.to, full)
		}
	}
	narrow.Hosts = append(narrow.Hosts, o.hosts...)
	p.Definition = narrow
	return nil
}

// try starts the server once, after a yes, and shows what it offers.
func (c *addCommand) try(ctx context.Context, a App, p *serverPlan) (*addmcp.Trial, bool, error) {
	question := "Start it once, in the sandbox profile " + p.Definition.Profile + "?"
	if p.Definition.URL != "" {
		question = "Connect to it once?"
	}
	if ok, err := c.Agree(ctx, c.yes, question); err != nil || !ok {
		return nil, false, err
	}
	t, err := a.Servers.Try(ctx, p.Name, p.File, p.Definition)
	if err != nil {
		return nil, false, err
	}
	if t.Err != "" && p.Definition.Profile == "confined" && c.servers.profile == "" && !c.yes {
		c.fact("failed", output.Line(t.Err))
		ok, err := c.Agree(ctx, false, "It does not start confined. Start it with the profile imported, which has your files and the network?")
		if err != nil || !ok {
			return nil, false, err
		}
		d := &p.Definition
		d.Profile, d.Read, d.Write, d.Hosts = "imported", nil, nil, nil
		if t, err = a.Servers.Try(ctx, p.Name, p.File, *d); err != nil {
			return nil, false, err
		}
	}
	if p.Login = t.Login; t.Login {
		if !*c.JSON {
			c.fact("login", "it wants one before it lists its tools: ken login "+output.Line(p.Name))
		}
		return t, true, nil
	}
	if t.Err != "" {
		fix := t.Fix
		if p.Definition.Profile == "confined" {
			fix = "give it what it needs with --host HOST, --read PATH, --write PATH or --env NAME, or add --profile imported, with which it has your files and the network"
		}
		return nil, false, &capability.Error{Kind: capability.Unavailable, Op: "start MCP server", Target: p.Name, Err: fmt.Errorf("server was tried once and failed, so nothing was added: %s", t.Err), Fix: fix}
	}
	for _, tool := range t.Tools {
		d := a.Standing(tool, nil)
		shown := serverTool{ID: tool.ID, Decision: d.Effect.String()}
		if shown.Decision == "deny" {
			shown.Rule = d.Reason.Rule
		}
		for _, f := range tool.Findings {
			if f.Severity == capability.Grave {
				shown.Findings++
			}
		}
		p.Tools = append(p.Tools, shown)
	}
	if !*c.JSON {
		c.printTools(p)
	}
	return t, true, nil
}

// addServer writes the definition, and pins what the server listed.
func (c *addCommand) addServer(ctx context.Context, a App, s *addmcp.Server, p *serverPlan, t *addmcp.Trial) error {
	notes := map[string]string{"from": p.From, "package": p.Package, "url": p.Definition.URL, "profile": p.Definition.Profile, "file": p.File}
	maps.DeleteFunc(notes, func(_, text string) bool { return text == "" })
	if err := a.Record(ctx, "add", "mcp", p.Name, p.Digest, notes); err != nil {
		return fmt.Errorf("add MCP server %s: not added, because the audit log could not be written: %w", p.Name, err)
	}
	if !p.Login {
		if err := t.Pin(ctx); err != nil {
			return err
		}
	}
	if err := a.Servers.Configure(p.File, p.Name, p.Definition); err != nil {
		return err
	}
	if err := s.Keep(); err != nil {
		return err
	}
	p.Added = true
	if *c.JSON {
		return c.PrintJSON(p)
	}
	c.Out.Linef("%s mcp.servers.%s in %s", c.Out.Style(output.Green, "added:"), p.Name, output.Line(p.File))
	switch {
	case p.Login:
		c.Out.Linef("next: ken login %s", p.Name)
	case len(p.Tools) > 0:
		id := output.Line(string(p.Tools[0].ID))
		c.Out.Linef("next: ken catalog show %s, then ken run %s '{}'", id, id)
	}
	return nil
}

func (c *addCommand) printServer(p *serverPlan) {
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

func (c *addCommand) printTools(p *serverPlan) {
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
		c.fact("rules", countBy(p.Tools, func(t serverTool) string { return words[t.Decision] }))
	}
	if held > 0 {
		c.fact("quarantine", output.Plural(held, "tool")+" with suspicious text; ken catalog lint names them once it is added")
	}
}

// removeServer removes an MCP server that was added, and reports whether there is
// one of this name.
func (c Config) removeServer(ctx context.Context, a App, name string) (bool, error) {
	added, ok := addmcp.Find(a.Servers.Config, name)
	if !ok {
		return false, nil
	}
	if err := a.Servers.Forget(a.Servers.File, name); err != nil {
		return true, err
	}
	if err := added.Forget(a.Servers.Config); err != nil {
		return true, err
	}
	if err := a.Servers.Unpin(ctx, name, a.Servers.File); err != nil {
		return true, err
	}
	if err := a.Record(ctx, "remove", "mcp", name, "", map[string]string{"file": a.Servers.File}); err != nil {
		return true, fmt.Errorf("remove MCP server %s: removed, but the audit log could not be written: %w", name, err)
	}
	if *c.JSON {
		return true, c.PrintJSON(map[string]any{"removed": name, "kind": "server", "file": a.Servers.File, "folder": added.Folder})
	}
	c.Out.Linef("%s is removed from %s", output.Line(name), output.Line(a.Servers.File))
	return true, nil
}
