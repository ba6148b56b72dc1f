package app

import (
	"context"

	"ken/internal/config"
	"ken/internal/govern/approval"
	"ken/internal/govern/review"
	"ken/internal/run/sandbox"
	"ken/internal/serve/doctor"
)

// Running says how calls are carried out here, for the doctor.
func (a *App) Running(ctx context.Context) doctor.Running {
	r := doctor.Running{Isolation: isolation(ctx, a.Settings.Sandbox), Profile: a.profile(), SecretErr: a.secrets.Check()}
	s, err := a.store.get()
	if err != nil {
		r.StoreErr = err
		return r
	}
	r.Store = s.Place()
	if desk, err := a.Desk(); err == nil {
		waiting, err := desk.List(ctx, approval.Filter{Tenant: a.Principal.Tenant, States: []approval.State{approval.Pending}})
		r.Waiting, r.StoreErr = len(waiting), err
	}
	if !a.reviewRequired() {
		return r
	}
	list, err := a.Extensions(ctx)
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

func (a *App) profile() string {
	if rules := a.Rules(); rules != nil {
		return rules.Settings().Profile.String()
	}
	return "none, since their files cannot be followed"
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
