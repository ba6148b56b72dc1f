// Package grants decides which folders and hosts a program may use, and which
// paths are private to Ken.
package grants

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/govern/reload"
	"ken/internal/run/executor"
	"ken/internal/run/executor/process"
)

// A Granter decides what programs may use. All fields are needed.
type Granter struct {
	Private PrivatePaths
	Current func() *reload.Snapshot // rules and settings in force
}

// Grant returns what a program may use besides its work directory: what its
// permissions, and for an extension its reviewed manifest, request.
func (g Granter) Grant(_ context.Context, call capability.Call, c *capability.Capability) (process.Grant, error) {
	now := g.Current()
	s := now.Settings.Sandbox
	out := process.Grant{MaxBytes: s.NetworkBytes, Rate: s.NetworkRate, Networks: now.Settings.Sandbox.Prefixes()}
	requested := requestedAccess(c)
	if requested.network {
		out.Hosts, out.FromArguments = requested.hosts, true
	}
	if requested.workspace == accessNone {
		return out, nil
	}
	rules := now.Rules
	if rules == nil {
		return out, &capability.Error{Kind: capability.Denied, Op: "run", Target: string(call.Target), Err: errors.New("policy is not loaded"), Fix: "see ken config check"}
	}
	roots := rules.Settings()
	dir, err := filepath.EvalSymlinks(g.Private.Places.Workspace)
	if err != nil {
		return out, &capability.Error{Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: err, Fix: "start ken in a folder that exists"}
	}
	if err := g.GuardWorkspace(call); err != nil {
		return out, err
	}
	if err := g.guardRoots(call, slices.Concat(roots.ReadRoots, roots.WriteRoots)); err != nil {
		return out, err
	}
	out.Guards = guards{rules}
	out.Dir, out.Read = dir, slices.Clone(roots.ReadRoots)
	if requested.workspace == accessWrite {
		out.Write = append([]string{dir}, roots.WriteRoots...)
	} else {
		out.Read = append([]string{dir}, out.Read...)
	}
	return out, nil
}

// GuardWorkspace returns an error if the workspace holds the user's own things,
// such as keys and the audit log, or lies among Ken's. No program gets it then.
func (g Granter) GuardWorkspace(call capability.Call) error {
	refuse := func(why string) error {
		return &capability.Error{
			Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "workspace",
			Err: errors.New("the program would see the files of this folder, which " + why), Fix: "start ken in the folder of a project",
		}
	}
	p := g.Private
	here := executor.Resolved(p.Places.Workspace)
	for _, private := range []string{p.Places.UserHome, p.Places.Home, p.Places.State, p.Places.Audit, p.Checkpoints} {
		if private != "" && within(here, executor.Resolved(private)) {
			return refuse("holds " + private)
		}
	}
	for _, own := range []string{p.Places.Home, p.Places.State, p.Places.Audit, p.Checkpoints, p.Places.Cache, p.Places.Logs} {
		if own != "" && within(executor.Resolved(own), here) {
			return refuse("lies in " + own)
		}
	}
	return nil
}

// guardRoots returns an error if a folder of ken.yaml holds what is Ken's own: the
// tokens in it would make the program the user.
func (g Granter) guardRoots(call capability.Call, roots []string) error {
	for _, root := range roots {
		here := executor.Resolved(root)
		for _, own := range g.Private.Folders() {
			if own = executor.Resolved(own); within(here, own) || within(own, here) {
				return &capability.Error{
					Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "policy.readRoots",
					Err: fmt.Errorf("the program would see %s, which overlaps Ken's own folder %s", root, own), Fix: "in policy.readRoots and policy.writeRoots, use folders that do not contain Ken's own folder",
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

// Guards returns rules in the form that executors enforce.
func Guards(rules *policy.Rules) executor.Guards { return guards{rules} }

type level uint8

const (
	accessNone level = iota
	accessRead
	accessWrite
)

// access is what a program requests.
type access struct {
	workspace level
	network   bool
	hosts     []string
}

// requestedAccess reads it from the capability. An extension's program has its own work
// directory; the files of the workspace it must ask for in its manifest, where
// the review shows it. One that belongs to no extension says it with its
// permissions.
func requestedAccess(c *capability.Capability) access {
	perms := policy.ParsePermissions(c.Permissions)
	out := access{network: perms.Has(policy.PermNetwork)}
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
