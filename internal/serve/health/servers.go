package health

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/statusfile"
	"ken/internal/serve/doctor"
	"ken/internal/serve/shim"
)

// Servers starts every MCP server once and returns what the doctor says of each.
// It returns when all have answered, failed or run out of time, and reads the
// catalog again, which then has their tools.
func (c *Collector) Servers(ctx context.Context) doctor.Servers {
	out := doctor.Servers{Daemon: c.daemon()}
	if c.cfg.Servers.Gateway() == nil {
		return out
	}
	defs := c.cfg.Servers.Definitions()
	out.Problems, out.Running = c.cfg.Servers.Problems(), c.Processes()
	if len(defs) == 0 {
		return out
	}
	var names []string
	for _, d := range defs {
		names = append(names, d.Name)
	}
	states := c.cfg.Servers.List(ctx, names...)
	if err := c.cfg.Catalog.Load(ctx); err != nil {
		c.cfg.Log.Warn("the catalog was not read again", "error", err)
	}
	tools := c.tools(ctx)
	offline := map[string]bool{}
	for name, o := range tools {
		offline[name] = o.offline
	}
	suggested := c.cfg.Suggester.Suggest(ctx, defs, states, offline)
	for _, d := range defs {
		i := slices.IndexFunc(states, func(st mcpgateway.Status) bool { return st.Name == d.Name })
		if i < 0 {
			continue // it went this moment
		}
		s := serverFacts(d, states[i])
		s.Long, s.Large, s.Narrower = tools[d.Name].long, tools[d.Name].large, doctor.Narrower(suggested[d.Name])
		out.List = append(out.List, s)
	}
	return out
}

func serverFacts(d mcpgateway.Server, st mcpgateway.Status) doctor.Server {
	s := doctor.Server{
		Name: d.Name, Origin: d.Origin.String(), Kind: st.Kind, Disabled: d.Disabled,
		Protocol: st.Protocol, Tools: st.Tools, Prompts: st.Prompts, Resources: st.Resources, Templates: st.Templates, Waiting: st.Quarantined,
		Err: st.Err, Fix: st.FixAt(doctor.DefinedAt(d.Name, d.Origin.String())), Noise: st.Noise, Sample: st.NoiseSample, Problems: st.Problems,
	}
	if d.Command != "" {
		s.Profile = string(d.EffectiveProfile())
	}
	if st.Isolation != nil {
		s.Held, s.Open = string(st.Isolation.Profile), st.Isolation.Missing
	}
	return s
}

// offered is what the doctor says of a server's tools.
type offered struct {
	long, large []string
	offline     bool // each says that it needs no network
}

const (
	longName    = 64       // what clients take
	largeSchema = 16 << 10 // bytes, some thousand tokens
)

// tools returns what the doctor says of the tools of each server.
func (c *Collector) tools(ctx context.Context) map[string]offered {
	out := map[string]offered{}
	for e := range c.cfg.Catalog.Snapshot().All() {
		if e.Origin.Format != mcptools.Format || e.Run == nil || e.Run.Runner != "mcp.call" {
			continue
		}
		o, known := out[e.Category]
		o.offline = (o.offline || !known) && e.Said().OpenWorld == capability.No
		if len(e.Name) > longName {
			o.long = append(o.long, e.Name[:longName]+"…")
		}
		if d, err := c.cfg.Catalog.Inspect(ctx, e); err == nil && len(d.Schema) > largeSchema {
			o.large = append(o.large, fmt.Sprintf("%s (%d KB)", e.Name, (len(d.Schema)+512)>>10))
		}
		out[e.Category] = o
	}
	return out
}

// Processes returns the processes that use servers now.
func (c *Collector) Processes() []doctor.Process {
	var out []doctor.Process
	for _, n := range statusfile.Read(c.cfg.StatusDir) {
		p := doctor.Process{PID: n.PID, What: n.What, Since: n.Since}
		for _, t := range n.Servers {
			p.Servers = append(p.Servers, doctor.Troubled{
				Name: t.Name, Runs: t.Backends, Restarts: t.Restarts, Err: t.Err, At: t.At, Noise: t.Noise, Sample: t.Sample,
				Down: t.Err != "" && (t.State == mcpgateway.Failed || t.State == mcpgateway.BackingOff),
			})
		}
		out = append(out, p)
	}
	return out
}

// daemon asks the user's daemon who it is. It starts none.
func (c *Collector) daemon() doctor.Daemon {
	if !shim.Supported {
		return doctor.Daemon{Unsupported: true}
	}
	place, err := shim.Where(c.cfg.Getenv, c.cfg.Workspace)
	if err != nil {
		return doctor.Daemon{Err: err}
	}
	g, err := shim.Ask(place)
	switch {
	case errors.Is(err, shim.ErrAbsent):
		return doctor.Daemon{}
	case err != nil:
		return doctor.Daemon{Err: err}
	}
	build, _ := shim.Build()
	return doctor.Daemon{PID: g.PID, Clients: g.Clients, Version: g.Version, Other: g.Build != build}
}
