package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
	"ken/internal/run/executor/analyze"
	"ken/internal/run/executor/api"
	"ken/internal/run/executor/files"
	"ken/internal/run/executor/process"
	"ken/internal/run/executor/results"
	"ken/internal/run/executor/shell"
	"ken/internal/run/grants"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/shim"
	"ken/llm"
)

// unrun returns a function that says why nothing runs a capability, or "" if
// something does. It is called for every capability before the first call, so
// it creates no executor.
func (a *App) unrun() func(*capability.Capability) string {
	forOthers := map[string]bool{"files.*": false, "result.*": false, "shell": false}
	for _, name := range []string{"analyze.*", "api.*", "db.*", "exec.*", "function.*", "mcp.*"} {
		forOthers[name] = true
	}
	for _, name := range a.plugins.Runners() {
		forOthers[name] = true
	}
	return func(c *capability.Capability) string {
		name, ok := runner.Matching(forOthers, c.RunBy())
		switch {
		case ok && name == "db.*":
			return a.withoutDatabase(c.Run)
		case ok && (forOthers[name] || c.Trust == capability.TrustBuiltin):
			return ""
		case ok:
			return "only tools that are part of Ken are run by " + c.RunBy() + "; give it a runner such as exec.git"
		case c.Run != nil && c.Run.Runner != "":
			return "nothing can run " + c.Run.Runner + " in this version"
		}
		return "nothing can run it: it does not say what runs it; add run, as in run: {runner: exec.git, argv: [git, status]}"
	}
}

// executors are made once, for all calls.
func (a *App) executors(kept *result.Store) (runner.Executors, error) {
	a.redactor.HoldTokens(auth.Known(a.Places.State)) // of a server that runs beside, or did
	own, err := a.ownExecutors(kept)
	if err != nil {
		return nil, err
	}
	if a.gateway != nil {
		own["mcp.*"] = a.gateway
	}
	out := runner.Executors{}
	for name, x := range own {
		out[name] = runner.FromExecutor(x)
		switch name {
		case "api.*", "db.*", "exec.*", "function.*", "mcp.*", "analyze.*": // what others bring may be run so
		default:
			out[name] = ownOnly{out[name]}
		}
		if a.Extensions.Required() {
			out[name] = reviewed{out[name], a.Extensions.Check}
		}
	}
	if err := a.plugins.AddExecutors(out); err != nil {
		return nil, err
	}
	return out, nil
}

// ownExecutors makes the executors that every App has, by the runners that each
// is for.
func (a *App) ownExecutors(kept *result.Store) (map[string]executor.Executor, error) {
	onFiles, err := a.newFiles()
	if err != nil {
		return nil, err
	}
	commands, err := a.newShell()
	if err != nil {
		return nil, err
	}
	programs, err := a.newPrograms()
	if err != nil {
		return nil, err
	}
	analysis, err := a.newAnalysis(kept)
	if err != nil {
		return nil, err
	}
	requests, err := a.newRequests(kept)
	if err != nil {
		return nil, err
	}
	databases, err := a.newDatabases()
	if err != nil {
		return nil, err
	}
	return map[string]executor.Executor{
		"analyze.*":  analysis,
		"api.*":      requests,
		"db.*":       databases,
		"exec.*":     programs,
		"shell":      commands,
		"files.*":    onFiles,
		"function.*": a.functions,
		"result.*":   results.New(kept),
	}, nil
}

func (a *App) newFiles() (*files.Executor, error) {
	roots := a.Settings.Policy
	x, err := files.New(files.Config{
		Workspace: a.Places.Workspace, Read: roots.ReadRoots, Write: roots.WriteRoots,
		Own: a.private().Closed(), OwnReadable: a.private().Readable(),
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(x.Close)
	return x, nil
}

func (a *App) newShell() (*shell.Executor, error) {
	x, err := shell.New(shell.Config{
		Workspace: a.Places.Workspace, Guards: func() executor.Guards { return grants.Guards(a.Rules()) }, Prefix: policy.Prefix, Guard: a.granter().GuardWorkspace,
		Settings: a.shellSettings, Home: a.shellHome, Env: a.Settings.Shell.Env, Getenv: a.redactor.Lookup,
		Network: a.shellNetwork, Limits: a.sandboxLimits(), Require: sandbox.Requirement(a.Settings.Sandbox.Require),
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(x.Close)
	if t := a.Rules().Tool("shell"); t.Enabled && t.Mode == policy.AccessFull {
		a.log.Warn("the tool shell is in the mode full: a model may have any command run in the sandbox", "key", "tools.shell.mode")
	}
	return x, nil
}

func (a *App) newPrograms() (*process.Executor, error) {
	x, err := process.New(process.Config{
		Extensions: filepath.Join(a.Places.Home, "extensions"), Lookup: a.lookup, Grant: a.granter().Grant, Workspace: a.Places.Workspace,
		Path: a.programPath(), Avoid: []string{a.Places.Workspace}, Getenv: a.redactor.Lookup,
		Limits: a.sandboxLimits(), Require: sandbox.Requirement(a.Settings.Sandbox.Require),
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(x.Close)
	return x, nil
}

func (a *App) newAnalysis(kept *result.Store) (*analyze.Executor, error) {
	return analyze.New(analyze.Config{
		Results: kept, Lookup: a.lookup, Key: a.fenceKey(),
		Model: func(context.Context) (llm.Model, error) { return a.Models.Model() },
	})
}

// newRequests makes the executor of HTTP requests.
func (a *App) newRequests(kept *result.Store) (*api.Executor, error) {
	x, err := api.New(api.Config{
		Lookup: a.lookup, Secret: a.redactor.Lookup, Save: func(name, value string) error { return a.secrets.Set(name, secret.Of(value)) },
		Hold: func(text string) { a.redactor.Hold(text) }, Redact: a.redactor.Held, Results: kept,
		Networks: func() []netip.Prefix { return a.effective().Sandbox.Prefixes() },
		Limits: func() api.Limits {
			now := a.effective()
			l := api.Limits{Bytes: now.Requests.Bytes, Rate: float64(now.Requests.Rate), Retries: now.Requests.Retries, Pages: now.Requests.Pages, Timeout: max(now.Limits.Timeout, now.Limits.MaxTimeout)}
			if l.Retries == 0 {
				l.Retries = -1 // none, and not the default
			}
			return l
		},
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(x.Close)
	return x, nil
}

// private returns the paths that are private to Ken.
func (a *App) private() grants.PrivatePaths {
	p := grants.PrivatePaths{Places: a.Places, Checkpoints: a.checkpoints(), ConfigFile: a.configFile}
	// Where the name of the home is too long the socket lies elsewhere.
	if place, err := shim.Where(a.getenv, a.Places.Workspace); err == nil && place.Private {
		p.SocketDir = filepath.Dir(place.Socket)
	}
	return p
}

func (a *App) granter() grants.Granter {
	return grants.Granter{Private: a.private(), Current: a.loader.Current}
}

// ownOnly is an executor for the tools of the program alone: what governs them
// goes by their names.
type ownOnly struct{ runner.Executor }

func (o ownOnly) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (runner.Facts, error) {
	if c.Trust != capability.TrustBuiltin {
		return runner.Facts{}, &capability.Error{
			Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "run.runner",
			Err: errors.New("only tools that are part of Ken are run so"), Fix: "give it a runner such as exec.git",
		}
	}
	return o.Executor.Facts(ctx, call, c)
}

func (o ownOnly) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	return runner.Check(ctx, o.Executor, call)
}

// A reviewed executor checks directly before the effect that the extension of a
// call is on: the call may have waited since it was decided.
type reviewed struct {
	runner.Executor
	check func(context.Context, capability.ID) error
}

func (r reviewed) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	if err := r.check(ctx, call.Target); err != nil {
		return capability.Result{}, err
	}
	return runner.Check(ctx, r.Executor, call)
}

func (r reviewed) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	if err := r.check(ctx, call.Target); err != nil {
		return capability.Result{}, err
	}
	return r.Executor.Invoke(ctx, call)
}

// programPath lists the folders of programs: those of ken.yaml, or else the
// user's own PATH and then the system's.
func (a *App) programPath() string {
	list := a.Settings.Extensions.Path
	if len(list) == 0 {
		list = append(filepath.SplitList(a.path), executor.DefaultPath)
	}
	return strings.Join(list, string(os.PathListSeparator))
}

// sandboxLimits are the widest. Who calls narrows them: most calls end after
// limits.timeout, and a recipe may ask for as much as limits.maxTimeout.
func (a *App) sandboxLimits() sandbox.Limits {
	s, l := a.Settings.Sandbox, a.Settings.Limits
	return sandbox.Limits{
		Wall: max(l.Timeout, l.MaxTimeout), CPU: s.CPU, Memory: s.Memory, AddressSpace: s.AddressSpace, Processes: s.Processes, OpenFiles: s.OpenFiles,
		FileSize: s.FileSize, Disk: s.Disk, Scratch: s.Scratch, Output: s.Output, OutputStop: s.OutputStop,
	}
}

// shellSettings are asked for at every call, so that what was taken away is
// gone at once.
func (a *App) shellSettings() shell.Settings {
	t := a.Rules().Tool("shell")
	s := shell.Settings{AllowedPrefixes: t.AllowedPrefixes, Timeout: t.Timeout, MaxOutputChars: t.MaxOutputChars, AllowAnyCwd: t.AllowAnyCwd}
	if t.Enabled {
		s.Mode = shell.Mode(t.Mode.String())
	}
	return s
}

// shellHome returns the home directory of a principal's commands in this
// workspace. Commands of other principals and of other projects do not read what
// tools keep there.
func (a *App) shellHome(p capability.Principal) string {
	h := sha256.New()
	for _, part := range []string{p.Tenant, p.ID, executor.Resolved(a.Places.Workspace)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return filepath.Join(a.Places.State, "shell-homes", hex.EncodeToString(h.Sum(nil)[:16]))
}

func (a *App) shellNetwork(context.Context, capability.Call) (sandbox.Egress, error) {
	now := a.effective()
	if len(now.Shell.Hosts) == 0 {
		return nil, nil
	}
	return egress.New(egress.Config{Allow: now.Shell.Hosts, Networks: now.Sandbox.Prefixes(), MaxBytes: now.Sandbox.NetworkBytes, Rate: now.Sandbox.NetworkRate})
}
