package app

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/run/executor"
	"ken/internal/run/executor/files"
	"ken/internal/run/executor/function"
	"ken/internal/run/executor/process"
	"ken/internal/run/executor/results"
	"ken/internal/run/executor/shell"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
)

// running is what carries calls out. It is made when the first call comes.
type running struct {
	functions *function.Executor
	results   part[*result.Store]
	runner    part[*runner.Runner]
}

func (a *App) prepareRunning(cfg Config) error {
	f, err := function.New(cfg.Functions...)
	if err != nil {
		return err
	}
	a.functions = f
	a.results.build = func() (*result.Store, error) {
		set := a.Settings.Results
		s, err := result.Open(result.Config{
			Dir: filepath.Join(a.Places.State, "results"), Keep: set.Keep, PerSession: set.PerSession, MaxBytes: set.MaxBytes, MaxTotal: set.MaxTotal,
		})
		if err == nil {
			a.closeLater(s.Close)
		}
		return s, err
	}
	a.runner.build = a.newRunner
	return nil
}

// ownTools gives the tools that are part of the program. They are the same
// wherever it runs, so nobody searches for them.
func ownTools(ctx context.Context) (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Config{
		Sources: []capability.Source{memory("ken", capability.TrustBuiltin, files.Tools(), shell.Tools(), results.Tools())},
		Machine: catalog.ThisMachine(),
	})
	if err == nil {
		err = c.Load(ctx)
	}
	return c, err
}

// ownIDs gives every id by which one of them can be called.
func ownIDs(s *catalog.Snapshot) []capability.ID {
	var out []capability.ID
	for e := range s.All() {
		out = append(out, e.ID)
		for _, alias := range e.Aliases {
			out = append(out, capability.MakeID(e.Kind, alias))
		}
	}
	return out
}

func memory(name string, trust capability.Trust, lists ...[]executor.Tool) *source.Memory {
	m := source.NewMemory(name, trust)
	for _, t := range slices.Concat(lists...) {
		m.Put(t.Capability, t.Detail)
	}
	return m
}

// Invoker gives what carries calls out, for the door.
func (a *App) invoker(context.Context) (capability.Invoker, error) {
	r, err := a.runner.get()
	if err != nil {
		return nil, err
	}
	return capability.InvokerFunc(func(ctx context.Context, call capability.Call) (capability.Result, error) {
		a.holdSecrets()
		return r.Invoke(ctx, call)
	}), nil
}

func (a *App) newRunner() (*runner.Runner, error) {
	log, err := a.trail.get()
	if err != nil {
		return nil, err
	}
	db, err := a.store.get()
	if err != nil {
		return nil, err
	}
	desk, err := a.desk.get()
	if err != nil {
		return nil, err
	}
	kept, err := a.results.get()
	if err != nil {
		return nil, err
	}
	executors, err := a.executors(kept)
	if err != nil {
		return nil, err
	}
	l := a.Settings.Limits
	r, err := runner.New(runner.Config{
		Resolve: a.Door.Resolve, Executors: executors, Log: log, Rules: a.Rules, Desk: desk, Effects: db, Results: kept,
		Redactor: a.redactor, Observe: a.observe,
		Limits: runner.Limits{
			Concurrent: l.Concurrent, PerExtension: l.PerExtension, Queue: l.Queue, QueuePerExtension: l.QueuePerExtension, Wait: l.Wait,
			Timeout: l.Timeout, MaxTimeout: l.MaxTimeout, Slow: l.Slow, ArgumentBytes: l.ArgumentBytes, ArgumentDepth: l.ArgumentDepth,
			Inline: l.Inline, DataBytes: l.DataBytes, Remember: l.Remember,
		},
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(func() error { return r.Close(context.Background()) })
	a.watchRules(r, rulesEvery)
	return r, nil
}

// executors are made once, for all calls.
func (a *App) executors(kept *result.Store) (runner.Executors, error) {
	roots := a.Settings.Policy
	onFiles, err := files.New(files.Config{
		Workspace: a.Places.Workspace, Read: roots.ReadRoots, Write: roots.WriteRoots,
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(onFiles.Close)
	if err := os.MkdirAll(a.shellHome(), 0o700); err != nil {
		return nil, err
	}
	commands, err := shell.New(shell.Config{
		Workspace: a.Places.Workspace, Protect: protectedNames(), Guard: a.guardWorkspace,
		Settings: a.shellSettings, Home: a.shellHome(), Env: a.Settings.Shell.Env, Getenv: a.variable,
		Network: a.shellNetwork, Limits: a.sandboxLimits(), Require: sandbox.Requirement(a.Settings.Sandbox.Require),
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(commands.Close)
	programs, err := process.New(process.Config{
		Extensions: filepath.Join(a.Places.Home, "extensions"), Lookup: a.lookup, Grant: a.grant, Workspace: a.Places.Workspace,
		Path: a.programPath(), Avoid: []string{a.Places.Workspace}, Getenv: a.variable,
		Limits: a.sandboxLimits(), Require: sandbox.Requirement(a.Settings.Sandbox.Require),
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(programs.Close)
	if t := a.Rules().Tool("shell"); t.Enabled && t.Mode == policy.AccessFull {
		a.log.Warn("the tool shell is in the mode full: a model may have any command run in the sandbox", "key", "tools.shell.mode")
	}
	own := map[string]executor.Executor{
		"exec.*":     programs,
		"shell":      commands,
		"files.*":    onFiles,
		"function.*": a.functions,
		"result.*":   results.New(kept),
	}
	out := runner.Executors{}
	for name, x := range own {
		out[name] = runner.FromExecutor(x)
		if name != "exec.*" && name != "function.*" {
			out[name] = ownOnly{out[name]}
		}
		if a.reviewRequired() {
			out[name] = reviewed{out[name], a}
		}
	}
	return out, nil
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

// programPath lists the folders of programs: those of ken.yaml, or else the
// user's own PATH and then the system's.
func (a *App) programPath() string {
	list := a.Settings.Extensions.Path
	if len(list) == 0 {
		list = append(filepath.SplitList(a.path), executor.DefaultPath)
	}
	return strings.Join(list, string(os.PathListSeparator))
}

func (a *App) sandboxLimits() sandbox.Limits {
	s := a.Settings.Sandbox
	return sandbox.Limits{
		Wall: a.Settings.Limits.Timeout, CPU: s.CPU, Memory: s.Memory, AddressSpace: s.AddressSpace, Processes: s.Processes, OpenFiles: s.OpenFiles,
		FileSize: s.FileSize, Disk: s.Disk, Scratch: s.Scratch, Output: s.Output, OutputStop: s.OutputStop,
	}
}

// lookup finds a capability for an executor, with its schema.
func (a *App) lookup(ctx context.Context, target capability.ID) (*capability.Capability, capability.Detail, error) {
	v := a.Oversee()
	e, err := v.Lookup(string(target))
	if err != nil {
		return nil, capability.Detail{}, err
	}
	d, err := a.Door.Inspect(ctx, v, string(e.ID))
	return e.Capability, d.Detail, err
}

// variable gives the value of a name that a recipe asks for: a variable, or a
// secret, which the redactor then knows.
func (a *App) variable(name string) (string, bool) {
	v, err := a.secrets.Lookup(name)
	if err != nil {
		return "", false
	}
	a.holdSecrets()
	return v.Reveal(), true
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

func (a *App) shellHome() string { return filepath.Join(a.Places.State, "shell-home") }

func (a *App) shellNetwork(context.Context, capability.Call) (sandbox.Egress, error) {
	s := a.Settings.Sandbox
	if len(a.Settings.Shell.Hosts) == 0 {
		return nil, nil
	}
	return egress.New(egress.Config{Allow: a.Settings.Shell.Hosts, Networks: a.networks(), MaxBytes: s.NetworkBytes, Rate: s.NetworkRate})
}

// networks gives the private addresses that ken.yaml opens.
func (a *App) networks() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range a.Settings.Sandbox.Networks {
		if p, err := netip.ParsePrefix(text); err == nil { // the configuration was checked
			out = append(out, p)
		}
	}
	return out
}

// grant says what a program may have besides its work directory: what its
// permissions, and for an extension its reviewed manifest, ask for.
func (a *App) grant(_ context.Context, call capability.Call, c *capability.Capability) (process.Grant, error) {
	g := process.Grant{MaxBytes: a.Settings.Sandbox.NetworkBytes, Rate: a.Settings.Sandbox.NetworkRate, Networks: a.networks()}
	asks := a.asks(c)
	if asks.network {
		g.Hosts, g.FromArguments = asks.hosts, true
	}
	if asks.workspace == accessNone {
		return g, nil
	}
	rules := a.Rules()
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
	g.Dir, g.Read = dir, slices.Clone(roots.ReadRoots)
	if asks.workspace == accessWrite {
		g.Write = append([]string{dir}, roots.WriteRoots...)
		g.Protect = protected(dir)
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
	here := resolved(a.Places.Workspace)
	for _, private := range []string{a.Places.UserHome, a.Places.Home, a.Places.State, a.Places.Audit, a.checkpoints()} {
		if private != "" && within(here, resolved(private)) {
			return refuse("holds " + private)
		}
	}
	for _, own := range []string{a.Places.Home, a.Places.State, a.Places.Audit, a.checkpoints(), a.Places.Cache, a.Places.Logs} {
		if own != "" && within(resolved(own), here) {
			return refuse("lies in " + own)
		}
	}
	return nil
}

// resolved follows the links of a path, as far as it is there.
func resolved(path string) string {
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest)
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// protectedNames are what programs may read but not change in a workspace: they
// decide what others run later.
func protectedNames() []string {
	return []string{
		".git", ".ken", ".kenignore", "context/tool-access.json", "AGENTS.md", "CLAUDE.md", "GEMINI.md",
		".claude", ".cursor", ".agents", ".wunderland", ".agentos", ".openclaw", "docs/capabilities", ".mcp.json", ".vscode", ".idea", ".envrc",
		".github/workflows",
	}
}

// protected gives them by their whole names.
func protected(workspace string) []string {
	var out []string
	for _, name := range protectedNames() {
		out = append(out, filepath.Join(workspace, filepath.FromSlash(name)))
	}
	return out
}

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

// Results gives what calls returned.
func (a *App) Results() (*result.Store, error) { return a.results.get() }
