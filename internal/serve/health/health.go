// Package health collects what ken doctor and the readiness probes report about
// a Ken that runs.
package health

import (
	"context"
	"log/slog"

	"ken/internal/config"
	"ken/internal/govern/approval"
	"ken/internal/govern/extensions"
	"ken/internal/govern/review"
	"ken/internal/know/catalog"
	"ken/internal/run/mcpservers"
	"ken/internal/run/mcpservers/profile"
	"ken/internal/run/sandbox"
	"ken/internal/secret"
	"ken/internal/serve/doctor"
	"ken/internal/store"
)

// A Config says what a [Collector] looks at.
type Config struct {
	Sandbox    config.Sandbox
	Profile    func() string // the profile of the rules
	ShellFull  func() bool   // whether the tool shell runs any command
	Tenant     string        // of the operator
	Secrets    *secret.Store
	Store      func() (*store.Store, error)
	Desk       func() (*approval.Desk, error)
	Extensions *extensions.Set
	Databases  func() []config.Database
	Resolve    func(reference string) (string, error) // returns the secret that a reference stands for

	Servers   *mcpservers.Servers
	Suggester *profile.Suggester
	StatusDir string // where processes publish the status of their servers
	Catalog   *catalog.Catalog
	Workspace string
	Getenv    func(string) string
	Log       *slog.Logger

	// Audit are the folders that the audit log writes to: its own, and that of
	// the checkpoints.
	Audit []string
}

// A Collector collects facts for the doctor.
type Collector struct{ cfg Config }

// New returns a Collector. It looks at nothing yet.
func New(cfg Config) *Collector { return &Collector{cfg} }

// Running returns how calls are carried out here.
func (c *Collector) Running(ctx context.Context) doctor.Running {
	r := doctor.Running{Isolation: isolation(ctx, c.cfg.Sandbox), Profile: c.cfg.Profile(), ShellFull: c.cfg.ShellFull(), SecretErr: c.cfg.Secrets.Check()}
	if len(c.cfg.Audit) > 0 {
		r.Audit, r.AuditErr = c.cfg.Audit[0], writable(c.cfg.Audit...)
	}
	s, err := c.cfg.Store()
	if err != nil {
		r.StoreErr = err
		return r
	}
	r.Store = s.Place()
	desk, err := c.cfg.Desk()
	if err == nil {
		var waiting []approval.Ticket
		waiting, err = desk.List(ctx, approval.Filter{Tenant: c.cfg.Tenant, States: []approval.State{approval.Pending}})
		r.Waiting = len(waiting)
	}
	r.StoreErr = err
	if !c.cfg.Extensions.Required() {
		return r
	}
	list, err := c.cfg.Extensions.List(ctx)
	if err != nil {
		r.StoreErr = err
	}
	for _, x := range list {
		if x.Status.State == review.Unreviewed || x.Status.State == review.Differs {
			r.New = append(r.New, x.Manifest.ID)
		}
	}
	return r
}

func isolation(ctx context.Context, s config.Sandbox) doctor.Isolation {
	report := sandbox.Probe(ctx)
	out := doctor.Isolation{Profile: string(report.Isolation.Profile), Require: string(s.Require), Missing: report.Isolation.Missing, Attempts: len(report.Attempts)}
	for _, t := range report.Attempts {
		if !t.Stopped {
			out.Escaped = append(out.Escaped, t.Name)
		}
	}
	have := report.Isolation.Profile
	if report.Unclear != "" && s.Require != config.NoIsolation {
		out.Refuses = "what the sandbox can do here could not be found out: " + report.Unclear
		return out
	}
	switch s.Require {
	case config.RequireFull:
		if have != sandbox.Full {
			out.Refuses = "sandbox.require wants the profile full, and this machine gives " + string(have)
		}
	case config.NoIsolation:
		out.Profile, out.Escaped = string(sandbox.None), nil
	case config.BestEffort:
	default:
		if have == sandbox.None {
			out.Refuses = "sandbox.require wants Landlock, and this machine has none of it"
		}
	}
	return out
}
