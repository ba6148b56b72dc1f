// Package executors builds the table of executors by the runner that each is for,
// and enforces which capabilities may use which of them.
package executors

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/policy"
	"ken/internal/govern/redaction"
	"ken/internal/run/executor"
	"ken/internal/run/executor/analyze"
	"ken/internal/run/executor/api"
	"ken/internal/run/executor/ask"
	"ken/internal/run/executor/browser"
	"ken/internal/run/executor/db"
	"ken/internal/run/executor/files"
	"ken/internal/run/executor/function"
	"ken/internal/run/executor/process"
	"ken/internal/run/executor/results"
	"ken/internal/run/grants"
	"ken/internal/run/plugins"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
	"ken/internal/secret"
	"ken/llm"
)

// Config is what executors are made of.
type Config struct {
	Start    config.Config         // the settings that Ken was opened with
	Settings func() *config.Config // the settings in force
	Rules    func() *policy.Rules  // the rules in force
	Places   dirs.Places
	Path     string // folders of programs; see [ProgramPath]

	// Lookup returns a capability and its detail by id.
	Lookup func(context.Context, capability.ID) (*capability.Capability, capability.Detail, error)

	Granter   grants.Granter
	Results   *result.Store
	Redactor  *redaction.Redactor
	FenceKey  []byte // marks the borders of foreign text
	Model     func(context.Context) (llm.Model, error)
	Ask       func(context.Context, string) (ask.Model, error) // by PROVIDER/NAME; "": the one of ken.yaml
	Functions *function.Executor
	Plugins   *plugins.Set
	Log       *slog.Logger
	OneCall   bool // the process makes one call of a person, and warns of no setting

	// HostPace, when not nil, returns how often all processes together may ask a host.
	HostPace func(host string, perSecond float64, burst int) Pace

	// Gateway, when not nil, runs the tools of MCP servers.
	Gateway executor.Executor

	// Reviewed, when not nil, returns an error if the extension of a capability is
	// not accepted or switched off. It is called directly before each effect.
	Reviewed func(context.Context, capability.ID) error

	// OnClose receives functions to call when Ken closes.
	OnClose func(func() error)
}

// A Pace says when a host may be asked again.
type Pace = api.Pace

// runners returns the runners of Ken itself. The value reports whether
// capabilities that are not part of Ken may use it.
func runners() map[string]bool {
	return map[string]bool{
		"analyze.*": true, "api.*": true, "browser.*": true, "db.*": true, "exec.*": true, "function.*": true, "llm.ask": true, "mcp.*": true,
		"files.*": false, "result.*": false, "shell": false, // their rules go by the names of Ken's tools
	}
}

// New makes all executors.
func New(cfg Config) (runner.Executors, error) {
	own, err := newBuiltin(cfg)
	if err != nil {
		return nil, err
	}
	open, out := runners(), runner.Executors{}
	for name, x := range own {
		out[name] = runner.FromExecutor(x)
		if !open[name] {
			out[name] = builtinOnly{out[name]}
		}
		if cfg.Reviewed != nil {
			out[name] = reviewed{out[name], cfg.Reviewed}
		}
	}
	if err := cfg.Plugins.AddExecutors(out); err != nil {
		return nil, err
	}
	return out, nil
}

// newBuiltin makes the executors of Ken itself.
func newBuiltin(cfg Config) (map[string]executor.Executor, error) {
	onFiles, err := newFiles(cfg)
	if err != nil {
		return nil, err
	}
	commands, err := newShell(cfg)
	if err != nil {
		return nil, err
	}
	programs, err := newPrograms(cfg)
	if err != nil {
		return nil, err
	}
	analysis, err := analyze.New(analyze.Config{Results: cfg.Results, Lookup: cfg.Lookup, Key: cfg.FenceKey, Model: cfg.Model})
	if err != nil {
		return nil, err
	}
	asking, err := ask.New(ask.Config{Lookup: cfg.Lookup, Model: cfg.Ask, Key: cfg.FenceKey})
	if err != nil {
		return nil, err
	}
	requests, err := newRequests(cfg)
	if err != nil {
		return nil, err
	}
	pages, err := newPages(cfg)
	if err != nil {
		return nil, err
	}
	databases, err := db.New(db.Config{
		Connections: func() []db.Connection { return connections(cfg.Settings().Databases) }, Lookup: cfg.Lookup, Secret: cfg.Redactor.Resolve,
	})
	if err != nil {
		return nil, err
	}
	out := map[string]executor.Executor{
		"analyze.*":  analysis,
		"api.*":      requests,
		"browser.*":  pages,
		"db.*":       databases,
		"exec.*":     programs,
		"shell":      commands,
		"files.*":    onFiles,
		"function.*": cfg.Functions,
		"llm.ask":    asking,
		"result.*":   results.New(cfg.Results),
	}
	if cfg.Gateway != nil {
		out["mcp.*"] = cfg.Gateway
	}
	return out, nil
}

func newFiles(cfg Config) (*files.Executor, error) {
	roots := cfg.Start.Policy
	x, err := files.New(files.Config{
		Workspace: cfg.Places.Workspace, Read: roots.ReadRoots, Write: roots.WriteRoots,
		Guards: func() executor.Guards { return grants.Guards(cfg.Rules()) },
		Own:    cfg.Granter.Private.Closed(), OwnReadable: cfg.Granter.Private.Readable(),
	})
	if err != nil {
		return nil, err
	}
	cfg.OnClose(x.Close)
	return x, nil
}

func newPrograms(cfg Config) (*process.Executor, error) {
	x, err := process.New(process.Config{
		Extensions: filepath.Join(cfg.Places.Home, "extensions"), Lookup: cfg.Lookup, Grant: cfg.Granter.Grant, Workspace: cfg.Places.Workspace,
		Path: cfg.Path, Avoid: []string{cfg.Places.Workspace}, Getenv: cfg.Redactor.Lookup,
		Limits: sandboxLimits(cfg.Start), Require: sandbox.Requirement(cfg.Start.Sandbox.Require),
	})
	if err != nil {
		return nil, err
	}
	cfg.OnClose(x.Close)
	return x, nil
}

// newPages makes the executor of web pages in a browser.
func newPages(cfg Config) (*browser.Executor, error) {
	x, err := browser.New(browser.Config{
		Extensions: filepath.Join(cfg.Places.Home, "extensions"), Lookup: cfg.Lookup, Workspace: cfg.Places.Workspace,
		Path: cfg.Path, Avoid: []string{cfg.Places.Workspace}, Networks: func() []netip.Prefix { return cfg.Settings().Sandbox.Prefixes() },
		Network: func() (bytes, rate int64) {
			now := cfg.Settings().Sandbox
			return now.NetworkBytes, now.NetworkRate
		},
		Most:   func() int { return cfg.Settings().Limits.Browsers },
		Idle:   func() time.Duration { return cfg.Settings().Limits.BrowserIdle },
		Limits: sandboxLimits(cfg.Start), Require: sandbox.Requirement(cfg.Start.Sandbox.Require),
	})
	if err != nil {
		return nil, err
	}
	cfg.OnClose(x.Close)
	return x, nil
}

// newRequests makes the executor of HTTP requests.
func newRequests(cfg Config) (*api.Executor, error) {
	x, err := api.New(api.Config{
		Lookup: cfg.Lookup, Secret: cfg.Redactor.Lookup, Save: func(name, value string) error { return cfg.Redactor.Secrets.Set(name, secret.Of(value)) },
		Hold: func(text string) { cfg.Redactor.Hold(text) }, Redact: cfg.Redactor.Held, Results: cfg.Results,
		Networks: func() []netip.Prefix { return cfg.Settings().Sandbox.Prefixes() },
		Limits:   func() api.Limits { return requestLimits(cfg.Settings()) }, Pace: cfg.HostPace,
	})
	if err != nil {
		return nil, err
	}
	cfg.OnClose(x.Close)
	return x, nil
}

func requestLimits(now *config.Config) api.Limits {
	l := api.Limits{Bytes: now.Requests.Bytes, Rate: float64(now.Requests.Rate), Retries: now.Requests.Retries, Pages: now.Requests.Pages, Timeout: max(now.Limits.Timeout, now.Limits.MaxTimeout)}
	if l.Retries == 0 {
		l.Retries = -1 // none, and not the default
	}
	return l
}

// sandboxLimits returns the widest limits of a program. Most calls end after
// limits.timeout; a recipe may ask for as much as limits.maxTimeout.
func sandboxLimits(start config.Config) sandbox.Limits {
	s, l := start.Sandbox, start.Limits
	return sandbox.Limits{
		Wall: max(l.Timeout, l.MaxTimeout), CPU: s.CPU, Memory: s.Memory, AddressSpace: s.AddressSpace, Processes: s.Processes, OpenFiles: s.OpenFiles,
		FileSize: s.FileSize, Disk: s.Disk, Scratch: s.Scratch, Output: s.Output, OutputStop: s.OutputStop,
	}
}

// builtinOnly is an executor that only tools that are part of Ken may use.
type builtinOnly struct{ runner.Executor }

func (b builtinOnly) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (runner.Facts, error) {
	if c.Trust != capability.TrustBuiltin {
		return runner.Facts{}, &capability.Error{
			Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "run.runner",
			Err: errors.New("runner is only for tools that are part of Ken"), Fix: "give it a runner such as exec.git",
		}
	}
	return b.Executor.Facts(ctx, call, c)
}

func (b builtinOnly) Preview(ctx context.Context, call capability.Call, c *capability.Capability) ([]executor.Shown, error) {
	return runner.Preview(ctx, b.Executor, call, c)
}

func (b builtinOnly) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	return runner.Check(ctx, b.Executor, call)
}

// A reviewed executor checks the extension of a call directly before the effect:
// the call may have waited since it was decided.
type reviewed struct {
	runner.Executor
	check func(context.Context, capability.ID) error
}

func (r reviewed) Preview(ctx context.Context, call capability.Call, c *capability.Capability) ([]executor.Shown, error) {
	return runner.Preview(ctx, r.Executor, call, c)
}

// Punctual implements [executor.Punctual].
func (r reviewed) Punctual() bool {
	p, ok := r.Executor.(interface{ Punctual() bool })
	return ok && p.Punctual()
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
