package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/profile"
	"ken/internal/run/mcpservers/statusfile"
	"ken/internal/serve/doctor"
	"ken/internal/serve/shim"
)

// ServerHealth starts every MCP server once and says how each is, for the
// doctor. It returns when all have answered, failed or run out of their time,
// and reads the catalog again, which then has what they list.
func (a *App) ServerHealth(ctx context.Context) doctor.Servers {
	out := doctor.Servers{Daemon: a.daemonHealth()}
	if a.gateway == nil {
		return out
	}
	defs := a.Servers.Definitions()
	out.Problems, out.Running = a.Servers.Problems(), a.serverProcesses()
	if len(defs) == 0 {
		return out
	}
	var names []string
	for _, d := range defs {
		names = append(names, d.Name)
	}
	states := a.Servers.List(ctx, names...)
	if err := a.Reload(ctx); err != nil {
		a.log.Warn("the catalog was not read again", "error", err)
	}
	tools := a.serverTools(ctx)
	offline := map[string]bool{}
	for name, o := range tools {
		offline[name] = o.closed
	}
	suggested := a.newSuggester().Suggest(ctx, defs, states, offline)
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

func (a *App) newSuggester() *profile.Suggester {
	gateway := a.gatewayConfig()
	gateway.Getenv, gateway.Log = a.Servers.Value, a.log
	return profile.New(profile.Config{
		KenHome: a.Places.Home, UserHome: a.Places.UserHome, ConfigFiles: a.Settings.Files(), Gateway: gateway,
		Networks: func() []netip.Prefix { return a.effective().Sandbox.Prefixes() }, Getenv: a.getenv,
	})
}

func serverFacts(d mcpgateway.Server, st mcpgateway.Status) doctor.Server {
	s := doctor.Server{
		Name: d.Name, Origin: d.Origin.String(), Kind: st.Kind, Disabled: d.Disabled,
		Protocol: st.Protocol, Tools: st.Tools, Prompts: st.Prompts, Resources: st.Resources, Templates: st.Templates, Waiting: st.Quarantined,
		Err: st.Err, Fix: st.Fix, Noise: st.Noise, Sample: st.NoiseSample, Problems: st.Problems,
	}
	if d.Command != "" {
		s.Profile = string(d.EffectiveProfile())
	}
	if st.Isolation != nil {
		s.Held, s.Open = string(st.Isolation.Profile), st.Isolation.Missing
	}
	return s
}

// offered is what the doctor wants to know of a server's tools.
type offered struct {
	long, large []string
	closed      bool // none says or may be taken to reach the outside
}

const (
	longName    = 64       // what clients take
	largeSchema = 16 << 10 // bytes, some thousand tokens
)

// serverTools looks at the tools that the catalog has of each server.
func (a *App) serverTools(ctx context.Context) map[string]offered {
	out := map[string]offered{}
	for e := range a.Oversee().All() {
		if e.Origin.Format != source.FormatMCP || e.Run == nil || e.Run.Runner != "mcp.call" {
			continue
		}
		o, known := out[e.Category]
		o.closed = (o.closed || !known) && e.Said().OpenWorld == capability.No
		if len(e.Name) > longName {
			o.long = append(o.long, e.Name[:longName]+"…")
		}
		if d, err := a.catalog.Inspect(ctx, e); err == nil && len(d.Schema) > largeSchema {
			o.large = append(o.large, fmt.Sprintf("%s (%d KB)", e.Name, (len(d.Schema)+512)>>10))
		}
		out[e.Category] = o
	}
	return out
}

// serverProcesses returns the processes that use servers now.
func (a *App) serverProcesses() []doctor.Process {
	var out []doctor.Process
	for _, n := range statusfile.Read(a.statusDir()) {
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

// daemonHealth asks the user's daemon who it is. It starts none.
func (a *App) daemonHealth() doctor.Daemon {
	if !shim.Supported {
		return doctor.Daemon{Unsupported: true}
	}
	place, err := shim.Where(a.getenv, a.Places.Workspace)
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
