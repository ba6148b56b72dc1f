package executors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
	"ken/internal/run/executor/shell"
	"ken/internal/run/grants"
	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
)

func newShell(cfg Config) (*shell.Executor, error) {
	x, err := shell.New(shell.Config{
		Workspace: cfg.Places.Workspace, Guards: func() executor.Guards { return grants.Guards(cfg.Rules()) }, Prefix: policy.Prefix, Guard: cfg.Granter.GuardWorkspace,
		Settings: func() shell.Settings { return shellSettings(cfg.Rules()) },
		Home:     func(p capability.Principal) string { return shellHome(cfg.Places, p) },
		Env:      cfg.Start.Shell.Env, Getenv: cfg.Redactor.Lookup,
		Network: func(context.Context, capability.Call) (sandbox.Egress, error) {
			return shellNetwork(cfg.Settings(), cfg.Rules())
		},
		Limits: sandboxLimits(cfg.Start), Require: sandbox.Requirement(cfg.Start.Sandbox.Require),
	})
	if err != nil {
		return nil, err
	}
	cfg.OnClose(x.Close)
	if t := cfg.Rules().Tool("shell"); t.Enabled && t.Mode == policy.AccessFull && !cfg.OneCall {
		cfg.Log.Warn("the tool shell is in the mode full: a model may have any command run in the sandbox", "key", "tools.shell.mode")
	}
	return x, nil
}

// shellSettings returns the settings of the next command. They are read for each
// call, so that a permission that was taken away does not apply any more.
func shellSettings(rules *policy.Rules) shell.Settings {
	t := rules.Tool("shell")
	s := shell.Settings{AllowedPrefixes: t.AllowedPrefixes, Timeout: t.Timeout, MaxOutputChars: t.MaxOutputChars, AllowAnyCwd: t.AllowAnyCwd, By: t.By}
	if t.Enabled {
		s.Mode = shell.Mode(t.Mode.String())
	}
	return s
}

// shellHome returns the home directory of a principal's commands in this
// workspace. Commands of other principals and of other projects cannot read what
// programs store there.
func shellHome(places dirs.Places, p capability.Principal) string {
	h := sha256.New()
	for _, part := range []string{p.Tenant, p.ID, executor.Resolved(places.Workspace)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return filepath.Join(places.State, "shell-homes", hex.EncodeToString(h.Sum(nil)[:16]))
}

// shellNetwork returns the way of commands to the hosts of shell.hosts, or nil if
// there are none or the rules deny the permission network.
func shellNetwork(now *config.Config, rules *policy.Rules) (sandbox.Egress, error) {
	if len(now.Shell.Hosts) == 0 || rules.Denies(policy.PermNetwork) {
		return nil, nil
	}
	return egress.New(egress.Config{Allow: now.Shell.Hosts, Networks: now.Sandbox.Prefixes(), MaxBytes: now.Sandbox.NetworkBytes, Rate: now.Sandbox.NetworkRate})
}
