package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/approval"
	"ken/internal/govern/review"
	"ken/internal/run/sandbox"
	"ken/internal/serve/doctor"
	"ken/internal/store"
	"ken/internal/untrusted"
)

// Facts are what the doctor looks at.
func (a *App) Facts(ctx context.Context) doctor.Facts {
	now := a.loader.Current()
	f := doctor.Facts{ConfigErr: standsBefore(now.Err), ConfigFiles: now.Settings.Files(), Home: a.Places.Home, CacheErr: a.CacheErr(), Servers: a.ServerHealth(ctx)}
	f.Listing = a.Oversee().List() // with what the servers list
	f.Meaning, f.MeaningErr = a.Meaning(ctx)
	f.Model, f.ModelErr = a.Answering(ctx)
	f.Running = a.Running(ctx)
	for _, p := range a.Reading {
		f.Places = append(f.Places, doctor.Place{Name: p.Name, Why: p.Why})
	}
	return f
}

// noRules says why there are no rules, nil where there are some. Whoever started
// the program reads what is wrong where; to others its files are nothing.
func (a *App) noRules(p capability.Principal) error {
	_, err := a.loader.Rules()
	if err != nil && (p.Tenant != a.Principal.Tenant || p.ID != a.Principal.ID) {
		return errors.New("the configuration cannot be followed")
	}
	return err
}

// fault says in one line why nothing may be called now; empty: calls may be made.
func (a *App) fault(operator bool) string {
	_, err := a.loader.Rules()
	switch {
	case err == nil:
		return ""
	case operator:
		return "Nothing may be called now: " + untrusted.Line(err.Error(), 500)
	}
	return "Nothing may be called now: the configuration cannot be followed. Whoever runs Ken can mend it."
}

// standsBefore adds to why the files of the configuration are refused what that
// means for a program that runs.
func standsBefore(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\nnothing may be called until it is mended; all other settings stay as they were", err)
}

// Running says how calls are carried out here, for the doctor.
func (a *App) Running(ctx context.Context) doctor.Running {
	r := doctor.Running{Isolation: isolation(ctx, a.Settings.Sandbox), Profile: a.profile(), SecretErr: a.secrets.Check()}
	s, err := a.store.Get()
	if err != nil {
		r.StoreErr = err
		return r
	}
	r.Store = s.Place()
	desk, err := a.Desk()
	if err == nil {
		var waiting []approval.Ticket
		waiting, err = desk.List(ctx, approval.Filter{Tenant: a.Principal.Tenant, States: []approval.State{approval.Pending}})
		r.Waiting = len(waiting)
	}
	r.StoreErr = err
	if !a.Extensions.Required() {
		return r
	}
	list, err := a.Extensions.List(ctx)
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

// recordable says why nothing can be recorded. That there was no room is tried
// anew, and not remembered: the next record tries again by itself, and nobody
// makes one while it is said that nothing works.
func (a *App) recordable() error {
	log, err := a.trail.Get()
	if err != nil {
		return err
	}
	folders := []string{a.Places.Audit, a.checkpoints()}
	for _, dir := range folders {
		if err := store.Room(dir); err != nil {
			return fmt.Errorf("write %s: %w", dir, err)
		}
	}
	return roomAgain(log.Err(), folders...)
}

// callable returns why no call can start now. It asks the runner, which every
// call passes through, and makes it write the records that the audit log did
// not accept before.
func (a *App) callable(ctx context.Context) error {
	r, err := a.runner.Get()
	if err != nil {
		return err
	}
	return r.Ready(ctx)
}

// roomAgain gives err, or what stands in its place now: where it says that a disk
// or a share of one was full, only a write can tell whether that is over.
func roomAgain(err error, folders ...string) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	for _, dir := range folders {
		if err := try(dir); err != nil {
			return fmt.Errorf("write %s: %w; make room there", dir, err)
		}
	}
	return nil
}

// try writes a file into a folder. It has no name while it is written: what else
// lies beside the record is looked at as a stray.
func try(dir string) error {
	f, err := os.CreateTemp(dir, ".ready-*")
	if err != nil {
		return err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	return errors.Join(err, f.Close()) // some systems say only there that it was too much
}
