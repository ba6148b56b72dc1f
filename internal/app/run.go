package app

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/govern/trace"
	"ken/internal/lazy"
	"ken/internal/objectstore"
	"ken/internal/procid"
	"ken/internal/run/executor/ask"
	"ken/internal/run/executor/function"
	"ken/internal/run/executors"
	"ken/internal/run/grants"
	"ken/internal/run/plugins"
	"ken/internal/run/queue"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/shim"
	"ken/llm"
)

// runParts carry calls out. Results and runner are made when the first call comes.
type runParts struct {
	plugins   *plugins.Set
	observe   func(runner.Transition)
	path      string // folders of programs
	functions *function.Executor
	lookup    executors.Lookup
	results   lazy.Value[*result.Store]
	runner    lazy.Value[*runner.Runner]
	jobs      lazy.Value[*queue.Stored]
	enforcer  runner.Enforcer
}

func (a *App) prepareRunning(cfg Config) error {
	f, err := function.New(cfg.Functions...)
	if err != nil {
		return err
	}
	a.functions = f
	a.results.Build = func() (*result.Store, error) {
		set := a.Settings.Results
		cfg := result.Config{Dir: filepath.Join(a.Places.State, "results"), Keep: set.Keep, PerSession: set.PerSession, MaxBytes: set.MaxBytes, MaxTotal: set.MaxTotal}
		if a.Replicas.Possible() {
			cfg.Shared = a.store.Get
			if set.Store != "" {
				bucket, err := objectstore.Open(objectstore.Config{Address: set.Store, Secret: func(name string) (string, error) {
					v, err := a.Secrets.Lookup(name)
					return v.Reveal(), err
				}})
				if err != nil {
					return nil, err
				}
				cfg.Objects = bucket
			}
		}
		s, err := result.Open(cfg)
		if err == nil {
			a.closers.Add(s.Close)
		}
		return s, err
	}
	a.runner.Build = a.newRunner
	a.jobs.Build = func() (*queue.Stored, error) { return newJobs(a) }
	return nil
}

// Invoker returns what carries calls out, for the door.
func (a *App) invoker(context.Context) (capability.Invoker, error) {
	r, err := a.runner.Get()
	if err != nil {
		return nil, err
	}
	return capability.InvokerFunc(func(ctx context.Context, call capability.Call) (capability.Result, error) {
		a.Redactor.Update()
		began := time.Now()
		res, err := r.Invoke(ctx, call)
		a.reporter.Call(trace.Call{
			Call: call, Result: res, Err: err, Began: began, Ended: time.Now(),
			Record: res.Meta[runner.MetaRecord], Effect: res.Meta[runner.MetaEffect],
		}, res.Meta[runner.MetaRepeated] != "")
		return res, err
	}), nil
}

// probeSandbox finds out beside everything else how programs can be confined here.
// Canaries try that, which takes a tenth of a second, and the first call wants it.
func probeSandbox(set config.Sandbox, closers *closers) {
	if sandbox.Requirement(set.Require) == sandbox.Off {
		return
	}
	var probing sync.WaitGroup
	probing.Go(func() { sandbox.Probe(context.Background()) })
	closers.Add(func() error { probing.Wait(); return nil })
}

func (a *App) newRunner() (*runner.Runner, error) {
	log, err := a.trail.Get()
	if err != nil {
		return nil, err
	}
	db, err := a.store.Get()
	if err != nil {
		return nil, err
	}
	desk, err := a.desk.Get()
	if err != nil {
		return nil, err
	}
	kept, err := a.results.Get()
	if err != nil {
		return nil, err
	}
	a.Replicas.following.Store(true)
	a.Redactor.HoldTokens(auth.Known(a.Places.State)) // of a server that runs beside, or did
	table, err := executors.New(a.executorConfig(kept))
	if err != nil {
		return nil, err
	}
	around, err := a.aroundCalls()
	if err != nil {
		return nil, err
	}
	var places func(kind string) runner.Places // nil: of this machine alone
	if q := a.Replicas.quota(); q != nil {
		places = func(kind string) runner.Places { return q.Slots(kind) }
	}
	r, err := runner.New(runner.Config{
		Resolve: a.Door.Resolve, Executors: table, Log: log, Rules: a.Rules, RulesFor: a.loader.RulesFor, RecentRules: a.recentRules, Desk: desk, Effects: db, Results: kept,
		Redactor: a.Redactor.Redactor, Observe: a.observe, Plugins: around, Process: procid.Self(), Dead: procid.Dead,
		Limits: func() runner.Limits { return callLimits(a.effective(), a.Settings.Serve.Drain) }, Places: places,
	})
	if err != nil {
		return nil, err
	}
	a.closers.Add(func() error { return r.Close(context.Background()) }) // which ends by itself
	a.closers.Add(a.enforcer.Watch(r))
	if err := a.Archive.CloseOrphans(context.Background(), log); err != nil {
		a.log.Warn("calls of a process that died are not closed in the audit log", "error", err)
	}
	return r, nil
}

// aroundCalls returns what runs around each call: the hooks of ken.yaml, then
// the plugins of the program.
func (a *App) aroundCalls() ([]runner.Plugin, error) {
	hooks, err := plugins.Hooks(plugins.HookConfig{
		Hooks: a.Settings.Hooks, Places: a.Places, Path: a.path, Getenv: a.getenv,
		Resolve: func(name capability.ID) capability.ID {
			if c, ok := a.capability(name); ok {
				return c.ID
			}
			return name
		},
	})
	return append(hooks, a.plugins.AroundCalls()...), err
}

// capability returns the capability of a name, also one that is hidden from
// callers.
func (a *App) capability(name capability.ID) (*capability.Capability, bool) {
	e, err := a.OperatorView().Lookup(string(name))
	if err != nil {
		return nil, false
	}
	return e.Capability, true
}

// callLimits are what ken.yaml says about calls.
func callLimits(now *config.Config, drain time.Duration) runner.Limits {
	l := now.Limits
	return runner.Limits{
		Concurrent: l.Concurrent, PerExtension: l.PerExtension, PerPrincipal: l.PerPrincipal, PerTenant: l.PerTenant, Queue: l.Queue, QueuePerExtension: l.QueuePerExtension, Wait: l.Wait,
		Timeout: l.Timeout, MaxTimeout: l.MaxTimeout, Slow: l.Slow, ArgumentBytes: l.ArgumentBytes, ArgumentDepth: l.ArgumentDepth,
		Inline: l.Inline, DataBytes: l.DataBytes, Remember: l.Remember, Drain: drain,
	}
}

// executorConfig returns what executors are made of.
func (a *App) executorConfig(kept *result.Store) executors.Config {
	cfg := executors.Config{
		Start: a.Settings, Settings: a.effective, Rules: a.Rules, Places: a.Places, Path: a.path, Lookup: a.lookup.Find,
		Granter: grants.Granter{Private: a.private(), Current: a.loader.Current},
		Results: kept, Redactor: a.Redactor, FenceKey: fenceKey(a.Places), Functions: a.functions, Plugins: a.plugins, Log: a.log, OneCall: a.oneCall, OnClose: a.closers.Add,
		Model: func(context.Context) (llm.Model, error) { return a.Models.Model() },
		Ask: func(_ context.Context, ref string) (ask.Model, error) {
			m, name, price, err := a.Models.Named(ref)
			return ask.Model{Model: m, Name: name, Cost: price.Cost, Priced: price.Known()}, err
		},
	}
	if a.gateway != nil {
		cfg.Gateway = a.gateway
	}
	if a.Replicas.Possible() {
		cfg.HostPace = a.Replicas.hostPace
	}
	if a.Extensions.Required() {
		cfg.Reviewed = a.Extensions.Check
	}
	return cfg
}

// private returns the paths that are private to Ken.
func (a *App) private() grants.PrivatePaths {
	p := grants.PrivatePaths{Places: a.Places, Checkpoints: a.Archive.CheckpointDir, ConfigFile: a.configFile}
	// Where the name of the home is too long the socket lies elsewhere.
	if place, err := shim.Where(a.getenv, a.Places.Workspace); err == nil && place.Private {
		p.SocketDir = filepath.Dir(place.Socket)
	}
	return p
}

// fenceKey returns the key of the fences around foreign text: the same at every
// start, so that the same text has the same bytes.
func fenceKey(places dirs.Places) []byte {
	return secret.LoadOrCreateKey(filepath.Join(places.State, "fence.key"))
}
