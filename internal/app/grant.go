package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
	"ken/internal/run/executor/process"
)

// grant says what a program may have besides its work directory: what its
// permissions, and for an extension its reviewed manifest, ask for.
func (a *App) grant(_ context.Context, call capability.Call, c *capability.Capability) (process.Grant, error) {
	now := a.loader.Current()
	s := now.Settings.Sandbox
	g := process.Grant{MaxBytes: s.NetworkBytes, Rate: s.NetworkRate, Networks: now.Settings.Sandbox.Prefixes()}
	asks := a.asks(c)
	if asks.network {
		g.Hosts, g.FromArguments = asks.hosts, true
	}
	if asks.workspace == accessNone {
		return g, nil
	}
	rules := now.Rules
	if rules == nil {
		return g, &capability.Error{Kind: capability.Denied, Op: "run", Target: string(call.Target), Err: errors.New("there are no rules"), Fix: "see ken config check"}
	}
	roots := rules.Settings()
	dir, err := filepath.EvalSymlinks(a.Places.Workspace)
	if err != nil {
		return g, &capability.Error{Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: err, Fix: "start ken in a folder that is there"}
	}
	if err := a.guardWorkspace(call); err != nil {
		return g, err
	}
	if err := a.guardRoots(call, slices.Concat(roots.ReadRoots, roots.WriteRoots)); err != nil {
		return g, err
	}
	g.Guards = guards{rules}
	g.Dir, g.Read = dir, slices.Clone(roots.ReadRoots)
	if asks.workspace == accessWrite {
		g.Write = append([]string{dir}, roots.WriteRoots...)
	} else {
		g.Read = append([]string{dir}, g.Read...)
	}
	return g, nil
}

// guardWorkspace refuses to hand a program a folder that holds the user's own
// things, keys and the trail among them.
func (a *App) guardWorkspace(call capability.Call) error {
	refuse := func(why string) error {
		return &capability.Error{
			Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "workspace",
			Err: errors.New("it would see the files of this folder, which " + why), Fix: "start ken in the folder of a project",
		}
	}
	here := executor.Resolved(a.Places.Workspace)
	for _, private := range []string{a.Places.UserHome, a.Places.Home, a.Places.State, a.Places.Audit, a.checkpoints()} {
		if private != "" && within(here, executor.Resolved(private)) {
			return refuse("holds " + private)
		}
	}
	for _, own := range []string{a.Places.Home, a.Places.State, a.Places.Audit, a.checkpoints(), a.Places.Cache, a.Places.Logs} {
		if own != "" && within(executor.Resolved(own), here) {
			return refuse("lies in " + own)
		}
	}
	return nil
}

// guardRoots refuses to hand a program a folder of ken.yaml that holds Ken's own:
// the tokens in it would make the program the user.
func (a *App) guardRoots(call capability.Call, roots []string) error {
	for _, root := range roots {
		here := executor.Resolved(root)
		for _, own := range a.ownFolders() {
			if own = executor.Resolved(own); within(here, own) || within(own, here) {
				return &capability.Error{
					Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "policy.readRoots",
					Err: fmt.Errorf("it would see %s, where %s is Ken's own", root, own), Fix: "name folders in policy.readRoots and policy.writeRoots that do not hold it",
				}
			}
		}
	}
	return nil
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// guards returns the rules' lists of protected and secret files in the form
// that executors enforce.
type guards struct{ *policy.Rules }

func (guards) Named(dir string, commands [][]string) []executor.Path {
	var out []executor.Path
	for _, p := range policy.Named(dir, commands) {
		out = append(out, executor.Path{Name: p.Name, Write: p.Write})
	}
	return out
}

// shellGuards returns the guards in force now.
func (a *App) shellGuards() executor.Guards { return guards{a.Rules()} }

type access uint8

const (
	accessNone access = iota
	accessRead
	accessWrite
)

// What a program asks for.
type asked struct {
	workspace access
	network   bool
	hosts     []string
}

// asks reads it from the capability. An extension's program has its own work
// directory; the files of the workspace it must ask for in its manifest, where
// the review shows it. One that belongs to no extension says it with its
// permissions.
func (a *App) asks(c *capability.Capability) asked {
	perms := policy.ParsePermissions(c.Permissions)
	out := asked{network: perms.Has(policy.PermNetwork)}
	if c.Run != nil {
		out.hosts = c.Run.Hosts
	}
	if _, packaged := c.Extension(); !packaged {
		switch {
		case perms.Has(policy.PermWrite):
			out.workspace = accessWrite
		case perms.Has(policy.PermRead):
			out.workspace = accessRead
		}
		return out
	}
	switch {
	case c.Run != nil && c.Run.Workspace == "write" && perms.Has(policy.PermWrite):
		out.workspace = accessWrite
	case c.Run != nil && c.Run.Workspace != "" && perms.Has(policy.PermRead):
		out.workspace = accessRead
	}
	return out
}
