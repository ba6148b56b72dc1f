package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
	"ken/internal/add/addplan"
	"ken/internal/config"
	"ken/internal/govern/audit"
	"ken/internal/govern/extensions"
	"ken/internal/govern/pin"
	"ken/internal/govern/policy"
	"ken/internal/know/source"
	"ken/internal/know/source/remote"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/run/mcpservers"
	"ken/internal/run/mcpservers/profile"
	"ken/internal/run/sandbox"
)

// adding is what adding something needs of the program.
type adding struct {
	app *App
	by  capability.Principal // who adds
}

// Adding returns how a person adds something to a program: for ken add, ken remove
// and the page. file is the ken.yaml that servers are written into. enable switches
// on a package that was added.
func Adding(a *App, by capability.Principal, file string, enable func(context.Context, *add.Package) (extensions.Extension, error)) addplan.App {
	x := adding{a, by}
	return addplan.App{
		Places: x.places(), Tools: x.tools(), By: by, Catalog: a.Catalog, Extensions: a.Extensions, Networks: a.Settings.Sandbox.Prefixes(),
		HasSecret: func(name string) bool { return a.getenv(name) != "" || a.Secrets.Has(name) },
		Secret: func(name string) (string, bool) {
			v, err := a.Secrets.Lookup(name)
			return v.Reveal(), err == nil
		},
		Standing: x.standing, Record: x.record, Enable: enable,
		Servers: addplan.Servers{
			Config: x.servers(), File: file, Defined: x.defined, Narrow: x.narrow, Try: x.try, Unpin: x.unpin,
			Configure: func(file, name string, d addmcp.Definition) error {
				text, err := json.Marshal(d) // which is YAML too
				if err != nil {
					return err
				}
				return config.Set(file, "mcp.servers."+name, string(text))
			},
			Forget: func(file, name string) error {
				_, err := config.Unset(file, "mcp.servers."+name)
				return err
			},
			Logout: a.Servers.Logout,
			Secrets: func() map[string][]string {
				out := map[string][]string{}
				for _, def := range a.Servers.Definitions() {
					out[def.Name] = mcpservers.SecretsOf(def)
				}
				return out
			},
		},
	}
}

// EnableAdded switches on a package that was just added, if it is the one that was
// shown. The catalog of a must have it.
func EnableAdded(ctx context.Context, a *App, by capability.Principal, p *add.Package, why string) (extensions.Extension, error) {
	x, err := a.Extensions.Find(ctx, p.ID, p.Folder())
	if err == nil && !p.Same(x.Manifest) {
		err = &capability.Error{
			Kind: capability.Conflict, Op: "enable extension", Target: p.ID, Err: errors.New("the content changed after it was shown"),
			Fix: "look at it with ken extension review " + p.ID,
		}
	}
	if err == nil {
		err = a.Extensions.Enable(ctx, by, x, why)
	}
	return x, err
}

// places are the folders that are written to.
func (x adding) places() add.Places {
	home := x.app.Places.Home
	return add.Places{
		Capabilities: filepath.Join(home, "capabilities"), Extensions: filepath.Join(home, "extensions"), Staging: filepath.Join(home, ".adding"),
		World: add.World{Fetch: remote.Fetch, Ask: remote.Ask, Load: func(ctx context.Context, dir string) (capability.Batch, error) {
			tree := source.NewTree(source.TreeConfig{Path: dir, Trust: capability.TrustUser})
			batch, err := tree.Load(ctx)
			return batch, errors.Join(err, tree.Close())
		}},
	}
}

// tools says how programs are run while a package is added.
func (x adding) tools() add.Tools {
	a := x.app
	return add.Tools{
		Path: a.path, Require: sandbox.Requirement(a.Settings.Sandbox.Require),
		Getenv: func(name string) (string, bool) { v := a.getenv(name); return v, v != "" },
	}
}

// record records in the audit log that a person added or removed something.
func (x adding) record(ctx context.Context, action, kind, name, digest string, notes map[string]string) error {
	a := x.app
	return a.record(ctx, audit.Record{
		Event: audit.Changed, Command: kind, Action: action, Target: kind + ":" + name, UserID: x.by.ID, Tenant: a.Principal.Tenant,
		Origin: string(capability.ByPerson), CapabilityHash: digest, Status: audit.Completed, Metadata: audit.Metadata{Notes: notes},
	})
}

// standing returns what the rules say of a model's call of a capability that
// reaches these hosts, whatever its other arguments.
func (x adding) standing(c *capability.Capability, hosts []string) policy.Decision {
	a := x.app
	return a.Rules().Decide(&policy.Request{
		Principal: a.Principal, Capability: policy.Of(c), Facts: policy.Facts{Hosts: hosts}, Surface: policy.SurfaceMCP,
	})
}

// servers says how MCP servers are added. The folder of their packages is beside
// the folders that they work in, because a server does not see Ken's own.
func (x adding) servers() addmcp.Config {
	a := x.app
	tools := x.tools()
	return addmcp.Config{
		Packages: filepath.Join(a.private().ServerWork(), ".packages"), Markers: filepath.Join(a.Places.Home, "servers"), Registry: a.Settings.MCP.Registry,
		Path: tools.Path, Hide: a.private().Folders(), Getenv: tools.Getenv, Require: tools.Require, Fetch: remote.Fetch,
	}
}

// defined returns where a server of a name is defined, or "" if there is none.
func (x adding) defined(name string) string {
	for _, s := range x.app.Servers.Definitions() {
		if s.Name == name {
			return s.Origin.String()
		}
	}
	return ""
}

// narrow returns a definition that is confined to what it names, or why it cannot
// be.
func (x adding) narrow(name string, d addmcp.Definition) (_ addmcp.Definition, against string) {
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
func (x adding) definition(name, file string, d addmcp.Definition) mcpgateway.Server {
	return x.app.Servers.Definition(config.Server{
		Name: name, Command: d.Command, Args: d.Args, Env: d.Env, URL: d.URL, Transport: config.Transport(d.Transport), Headers: d.Headers,
		Profile: config.ServerProfile(d.Profile), Read: d.Read, Write: d.Write, Hosts: d.Hosts, Origin: capability.Origin{Path: file},
	})
}

// try starts a server once, and returns what it listed. file is the ken.yaml that
// the definition is written into.
func (x adding) try(ctx context.Context, name, file string, d addmcp.Definition) (*addmcp.Trial, error) {
	a := x.app
	def := x.definition(name, file, d)
	t, err := a.Servers.Try(ctx, def)
	if err != nil {
		return nil, err
	}
	st := t.Status
	if st.Remedy == link.CheckAddress {
		st.Fix = "check that the server runs and that the address is right"
	}
	out := &addmcp.Trial{Tools: t.Tools, Err: st.Err, Fix: st.Fix, Login: def.URL != "" && strings.Contains(st.Fix, "ken login")}
	if st.Err != "" && st.Stderr != "" {
		out.Err += "; it said: " + st.Stderr
	}
	out.Pin = func(ctx context.Context) error {
		desk, err := a.serverParts.pins.Get()
		if err != nil {
			return err
		}
		return t.Pin(ctx, desk, def, x.person())
	}
	return out, nil
}

// unpin forgets the pins of a server that was removed.
func (x adding) unpin(ctx context.Context, name, file string) error {
	desk, err := x.app.serverParts.pins.Get()
	if err != nil {
		return err
	}
	return desk.Forget(ctx, pin.ServerKey(name, file), x.person())
}

// person returns who adds, in the operator's tenant: what is added is there for
// all users of this Ken.
func (x adding) person() capability.Principal {
	by := x.by
	by.Tenant = x.app.Principal.Tenant
	return by
}
