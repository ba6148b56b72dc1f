package app

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
	"ken/internal/config"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/govern/policy"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/profile"
	"ken/internal/run/sandbox"
)

// An Adding is what ken add and ken remove need of the program.
type Adding struct{ app *App }

// AddingTo returns the Adding of a program.
func AddingTo(a *App) Adding { return Adding{a} }

// Places are the folders that are written to.
func (x Adding) Places() add.Places {
	home := x.app.Places.Home
	return add.Places{
		Capabilities: filepath.Join(home, "capabilities"), Extensions: filepath.Join(home, "extensions"), Staging: filepath.Join(home, ".adding"),
	}
}

// Tools says how programs are run while a package is added.
func (x Adding) Tools() add.Tools {
	a := x.app
	return add.Tools{
		Path: a.path, Require: sandbox.Requirement(a.Settings.Sandbox.Require),
		Getenv: func(name string) (string, bool) { v := a.getenv(name); return v, v != "" },
	}
}

// Record records in the audit log that a person added or removed something.
func (x Adding) Record(ctx context.Context, action, kind, name, digest string, notes map[string]string) error {
	a := x.app
	return a.record(ctx, audit.Record{
		Event: audit.Changed, Command: kind, Action: action, Target: kind + ":" + name, UserID: a.Principal.ID, Tenant: a.Principal.Tenant,
		Origin: string(capability.ByPerson), CapabilityHash: digest, Status: audit.Completed, Metadata: audit.Metadata{Notes: notes},
	})
}

// Standing returns what the rules say of a model's call of a capability that
// reaches these hosts, whatever its other arguments.
func (x Adding) Standing(c *capability.Capability, hosts []string) policy.Decision {
	a := x.app
	return a.Rules().Decide(&policy.Request{
		Principal: a.Principal, Capability: policy.Of(c), Facts: policy.Facts{Hosts: hosts}, Surface: policy.SurfaceMCP,
	})
}

// Servers says how MCP servers are added. The folder of their packages is beside
// the folders that they work in, because a server does not see Ken's own.
func (x Adding) Servers() addmcp.Config {
	a := x.app
	tools := x.Tools()
	return addmcp.Config{
		Packages: filepath.Join(a.private().ServerWork(), ".packages"), Markers: filepath.Join(a.Places.Home, "servers"), Registry: a.Settings.MCP.Registry,
		Path: tools.Path, Hide: a.private().Folders(), Getenv: tools.Getenv, Require: tools.Require,
	}
}

// Defined returns where a server of a name is defined, or "" if there is none.
func (x Adding) Defined(name string) string {
	for _, s := range x.app.Servers.Definitions() {
		if s.Name == name {
			return s.Origin.String()
		}
	}
	return ""
}

// Narrow returns a definition that is confined to what it names, or why it cannot
// be.
func (x Adding) Narrow(name string, d addmcp.Definition) (_ addmcp.Definition, against string) {
	a := x.app
	s := profile.New(profile.Config{
		KenHome: a.Places.Home, UserHome: a.Places.UserHome, Gateway: a.gatewayConfig(), Getenv: a.getenv,
		Networks: func() []netip.Prefix { return a.effective().Sandbox.Prefixes() },
	})
	narrow, note := s.Tighten(x.definition(name, "", d))
	if narrow.Profile != mcpgateway.ProfileConfined {
		return d, note
	}
	d.Profile, d.Read, d.Write, d.Hosts = string(mcpgateway.ProfileConfined), narrow.Read, narrow.Write, narrow.Hosts
	return d, ""
}

// definition returns a definition in the form of the gateway. file is the ken.yaml
// that it is written into.
func (x Adding) definition(name, file string, d addmcp.Definition) mcpgateway.Server {
	return x.app.Servers.Definition(config.Server{
		Name: name, Command: d.Command, Args: d.Args, Env: d.Env, URL: d.URL, Transport: config.Transport(d.Transport), Headers: d.Headers,
		Profile: config.ServerProfile(d.Profile), Read: d.Read, Write: d.Write, Hosts: d.Hosts, Origin: capability.Origin{Path: file},
	})
}

// Try starts a server once, and returns what it listed. file is the ken.yaml that
// the definition is written into.
func (x Adding) Try(ctx context.Context, name, file string, d addmcp.Definition) (*addmcp.Trial, error) {
	a := x.app
	def := x.definition(name, file, d)
	t, err := a.Servers.Try(ctx, def)
	if err != nil {
		return nil, err
	}
	st := t.Status
	out := &addmcp.Trial{Tools: t.Tools, Err: st.Err, Fix: st.Fix, Login: def.URL != "" && strings.Contains(st.Fix, "ken login")}
	if st.Err != "" && st.Stderr != "" {
		out.Err += "; it said: " + st.Stderr
	}
	out.Pin = func(ctx context.Context) error {
		desk, err := a.serverParts.pins.Get()
		if err != nil {
			return err
		}
		return t.Pin(ctx, desk, def, a.Principal)
	}
	return out, nil
}

// Unpin forgets the pins of a server that was removed.
func (x Adding) Unpin(ctx context.Context, name, file string) error {
	desk, err := x.app.serverParts.pins.Get()
	if err != nil {
		return err
	}
	return desk.Forget(ctx, pin.ServerKey(name, file), x.app.Principal)
}
