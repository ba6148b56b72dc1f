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

// AddPlaces are the folders that ken add and ken remove write to.
func (a *App) AddPlaces() add.Places {
	home := a.Places.Home
	return add.Places{
		Capabilities: filepath.Join(home, "capabilities"), Extensions: filepath.Join(home, "extensions"), Staging: filepath.Join(home, ".adding"),
	}
}

// AddTools says how programs are run while a package is added.
func (a *App) AddTools() add.Tools {
	return add.Tools{
		Path: a.path, Require: sandbox.Requirement(a.Settings.Sandbox.Require),
		Getenv: func(name string) (string, bool) { v := a.getenv(name); return v, v != "" },
	}
}

// RecordAdded records in the audit log that a person added or removed something.
func (a *App) RecordAdded(ctx context.Context, action, kind, name, digest string, notes map[string]string) error {
	return a.record(ctx, audit.Record{
		Event: audit.Changed, Command: kind, Action: action, Target: kind + ":" + name, UserID: a.Principal.ID, Tenant: a.Principal.Tenant,
		Origin: string(capability.ByPerson), CapabilityHash: digest, Status: audit.Completed, Metadata: audit.Metadata{Notes: notes},
	})
}

// Standing returns what the rules say of a model's call of a capability that
// reaches these hosts, whatever its other arguments.
func (a *App) Standing(c *capability.Capability, hosts []string) policy.Decision {
	return a.Rules().Decide(&policy.Request{
		Principal: a.Principal, Capability: policy.Of(c), Facts: policy.Facts{Hosts: hosts}, Surface: policy.SurfaceMCP,
	})
}
