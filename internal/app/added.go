package app

import (
	"context"
	"path/filepath"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
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
