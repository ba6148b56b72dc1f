package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/policy"
	"ken/internal/run/mcpservers/profile"
	"ken/internal/serve/doctor"
	"ken/internal/serve/health"
)

// Facts are what the doctor looks at.
func (a *App) Facts(ctx context.Context) doctor.Facts {
	now := a.loader.Current()
	f := doctor.Facts{ConfigErr: standsBefore(now.Err), ConfigFiles: now.Settings.Files(), Home: a.Places.Home, CacheErr: parseCache(a.Places).CheckUsed(), Servers: a.health().Servers(ctx)}
	f.Listing = a.OperatorView().List() // with what the servers list
	f.Meaning, f.MeaningErr = a.Vectors.Check(ctx)
	f.Model, f.ModelErr = a.Models.Reach(ctx)
	f.Running = a.health().Running(ctx)
	f.Databases = a.health().Databases(ctx)
	for _, p := range a.Reading {
		f.Places = append(f.Places, doctor.Place{Name: p.Name, Why: p.Why})
	}
	return f
}

// health returns what collects the facts of the doctor.
func (a *App) health() *health.Collector {
	gateway := a.gatewayConfig()
	gateway.Getenv, gateway.Log = a.Servers.Value, a.log
	return health.New(health.Config{
		Sandbox: a.Settings.Sandbox, Profile: a.loader.ProfileName, ShellFull: a.shellFull, Tenant: a.Principal.Tenant, Secrets: a.Secrets, Store: a.store.Get, Desk: a.Desk, Extensions: a.Extensions,
		Databases: func() []config.Database { return a.effective().Databases }, Resolve: a.Redactor.Resolve,
		Servers: a.Servers, StatusDir: statusDir(a.Places), Catalog: a.Catalog, Workspace: a.Places.Workspace, Getenv: a.getenv, Log: a.log,
		Audit: []string{a.Places.Audit, a.Archive.CheckpointDir},
		Suggester: profile.New(profile.Config{
			KenHome: a.Places.Home, UserHome: a.Places.UserHome, ConfigFiles: a.Settings.Files(), Gateway: gateway,
			Networks: func() []netip.Prefix { return a.effective().Sandbox.Prefixes() }, Getenv: a.getenv,
		}),
	})
}

// shellFull reports whether the rules let the tool shell run any command.
func (a *App) shellFull() bool {
	rules := a.Rules()
	if rules == nil {
		return false
	}
	t := rules.Tool("shell")
	return t.Enabled && t.Mode == policy.AccessFull
}

// noRules returns why there are no rules, or nil if there are some. The user who
// started the program gets the error with its files and lines; others get one
// that names no files.
func (a *App) noRules(p capability.Principal) error {
	_, err := a.loader.Rules()
	if err != nil && (p.Tenant != a.Principal.Tenant || p.ID != a.Principal.ID) {
		return errors.New("the configuration cannot be followed")
	}
	return err
}

// standsBefore adds to why the files of the configuration are refused what that
// means for a program that runs.
func standsBefore(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\nnothing may be called until it is fixed; all other settings stay as they were", err)
}

// recordable returns why nothing can be recorded in the audit log.
func (a *App) recordable() error {
	log, err := a.trail.Get()
	if err != nil {
		return err
	}
	return health.Recordable(log.Err(), a.Places.Audit, a.Archive.CheckpointDir)
}
