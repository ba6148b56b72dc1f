package app

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/trace"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/lazy"
	"ken/internal/procid"
	"ken/internal/run/executor"
	"ken/internal/run/executor/analyze"
	"ken/internal/run/executor/files"
	"ken/internal/run/executor/function"
	"ken/internal/run/executor/results"
	"ken/internal/run/executor/shell"
	"ken/internal/run/plugins"
	"ken/internal/run/result"
	"ken/internal/run/runner"
)

// running is what carries calls out. It is made when the first call comes.
type running struct {
	functions *function.Executor
	details   details
	results   lazy.Value[*result.Store]
	runner    lazy.Value[*runner.Runner]
}

func (a *App) prepareRunning(cfg Config) error {
	f, err := function.New(cfg.Functions...)
	if err != nil {
		return err
	}
	a.functions = f
	a.results.Build = func() (*result.Store, error) {
		set := a.Settings.Results
		s, err := result.Open(result.Config{
			Dir: filepath.Join(a.Places.State, "results"), Keep: set.Keep, PerSession: set.PerSession, MaxBytes: set.MaxBytes, MaxTotal: set.MaxTotal,
		})
		if err == nil {
			a.closeLater(s.Close)
		}
		return s, err
	}
	a.runner.Build = a.newRunner
	return nil
}

// ownTools returns Ken's own tools. They are one of the catalog's sources, so
// they are counted, found and required like any other tool.
func ownTools(name string) *source.Memory {
	return memory(name, capability.TrustBuiltin, files.Tools(), shell.Tools(), results.Tools(), analyze.Tools())
}

// ownCatalog returns a catalog of only Ken's own tools. They are part of every
// prefix, and can be called even if --catalog replaces all sources.
func ownCatalog(ctx context.Context) (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Config{Sources: []capability.Source{ownTools("ken")}, Machine: catalog.ThisMachine()})
	if err == nil {
		err = c.Load(ctx)
	}
	return c, err
}

// ownIDs returns every id by which one of them can be called.
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

// Invoker returns what carries calls out, for the door.
func (a *App) invoker(context.Context) (capability.Invoker, error) {
	r, err := a.runner.Get()
	if err != nil {
		return nil, err
	}
	return capability.InvokerFunc(func(ctx context.Context, call capability.Call) (capability.Result, error) {
		a.redactor.Update()
		began := time.Now()
		res, err := r.Invoke(ctx, call)
		a.reporter.Call(trace.Call{
			Call: call, Result: res, Err: err, Began: began, Ended: time.Now(),
			Record: res.Meta[runner.MetaRecord], Effect: res.Meta[runner.MetaEffect],
		}, res.Meta[runner.MetaRepeated] != "")
		return res, err
	}), nil
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
	executors, err := a.executors(kept)
	if err != nil {
		return nil, err
	}
	around, err := a.aroundCalls()
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{
		Resolve: a.Door.Resolve, Executors: executors, Log: log, Rules: a.Rules, Desk: desk, Effects: db, Results: kept,
		Redactor: a.redactor.Redactor, Observe: a.observe, Plugins: around, Process: procid.Self(), Dead: procid.Dead,
		Limits: a.callLimits,
	})
	if err != nil {
		return nil, err
	}
	a.closeLater(func() error { return r.Close(context.Background()) }) // which ends by itself
	a.watchRules(r, rulesEvery)
	if err := a.Archive.CloseOrphans(context.Background(), log); err != nil {
		a.log.Warn("calls of a process that died are not closed in the audit log", "error", err)
	}
	return r, nil
}

// aroundCalls returns what runs around each call: the hooks of ken.yaml, then
// the plugins of the program.
func (a *App) aroundCalls() ([]runner.Plugin, error) {
	hooks, err := plugins.Hooks(plugins.HookConfig{
		Hooks: a.Settings.Hooks, Places: a.Places, Path: a.programPath(), Getenv: a.getenv,
		Resolve: func(name capability.ID) capability.ID {
			if e, err := a.Oversee().Lookup(string(name)); err == nil {
				return e.ID
			}
			return name
		},
	})
	return append(hooks, a.plugins.AroundCalls()...), err
}

// callLimits are what ken.yaml says about calls.
func (a *App) callLimits() runner.Limits {
	l := a.effective().Limits
	return runner.Limits{
		Concurrent: l.Concurrent, PerExtension: l.PerExtension, Queue: l.Queue, QueuePerExtension: l.QueuePerExtension, Wait: l.Wait,
		Timeout: l.Timeout, MaxTimeout: l.MaxTimeout, Slow: l.Slow, ArgumentBytes: l.ArgumentBytes, ArgumentDepth: l.ArgumentDepth,
		Inline: l.Inline, DataBytes: l.DataBytes, Remember: l.Remember, Drain: a.Settings.Serve.Drain,
	}
}

// details keeps what was read of capabilities that are called, for as long as
// their snapshot is the latest: a call asks for it more than once.
type details struct {
	mu sync.Mutex
	of *catalog.Snapshot
	by map[capability.ID]capability.Detail
}

// lookup finds a capability by its id for an executor, with its schema.
func (a *App) lookup(ctx context.Context, target capability.ID) (*capability.Capability, capability.Detail, error) {
	from, s := a.catalog, a.catalog.Snapshot()
	e, ok := s.Get(target)
	if !ok {
		from = a.own
		if e, ok = a.own.Snapshot().Get(target); !ok {
			return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(target)}
		}
	}
	known := &a.details
	known.mu.Lock()
	if known.of != s {
		known.of, known.by = s, map[capability.ID]capability.Detail{}
	}
	d, ok := known.by[target]
	known.mu.Unlock()
	if ok {
		return e.Capability, d, nil
	}
	d, err := from.Inspect(ctx, e)
	if err == nil {
		known.mu.Lock()
		if known.of == s {
			known.by[target] = d
		}
		known.mu.Unlock()
	}
	return e.Capability, d, err
}
