// Package app builds Ken out of its parts. It is the only package that knows
// all of them; [Open] opens Ken as a whole.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/config/sources"
	"ken/internal/dirs"
	"ken/internal/door"
	"ken/internal/find/card"
	"ken/internal/find/outcome"
	"ken/internal/find/ranking"
	"ken/internal/find/tune"
	"ken/internal/find/vectors"
	"ken/internal/govern/pin"
	"ken/internal/govern/policy"
	"ken/internal/govern/reload"
	"ken/internal/govern/trace"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/know/source/parsecache"
	"ken/internal/run/executor"
	"ken/internal/run/executor/function"
	"ken/internal/run/executors"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers"
	"ken/internal/run/mcpservers/toolreview"
	"ken/internal/run/plugins"
	"ken/internal/run/runner"
	"ken/internal/run/sandbox"
	"ken/internal/talk/commands"
	"ken/llm"
	"ken/plugin"
)

// Config says how to build Ken. The zero value is this user, here.
type Config struct {
	// ConfigFile, when not empty, is read instead of the usual ken.yaml files.
	ConfigFile string

	// Catalogs, when not empty, are directories or files that replace every
	// other source.
	Catalogs []string

	// Sources are read besides all others, with the highest precedence.
	Sources []capability.Source

	// CardScorer, when not nil, judges cards instead of capabilities.scorer.
	CardScorer card.Scorer

	// Embedder, when not nil, makes vectors of capabilities and messages.
	Embedder llm.Embedder

	// Log receives what goes wrong outside of calls; nil discards it.
	Log *slog.Logger

	// Observe, when not nil, is told of every change of a call's state. It must
	// not block.
	Observe func(runner.Transition)

	// Functions are Go functions that can be called like tools.
	Functions []*function.Function

	// Model, when not nil, answers instead of the one that ken.yaml names.
	Model llm.Model

	// Plugins add to what Ken knows, runs and says, in this order.
	Plugins []plugin.Plugin

	// Override changes how to find, over what ken.yaml says.
	Override door.Override

	// Home, when not empty, is used instead of KEN_HOME. It is absolute, or
	// relative to Dir.
	Home string

	// Getenv and Dir stand for the environment and the working directory;
	// nil and empty mean the process's own.
	Getenv func(string) string
	Dir    string

	// Servers has servers listed that never were, before Open returns; without
	// it they appear once they are. Briefly waits for them as long as a search
	// does, and longer only for those that one of Targets belongs to.
	Servers bool
	Briefly bool
	Targets []string

	// OneCall says that the process makes one call of a person and ends. What is
	// to be known about the settings is told by the doctor and by processes that stay.
	OneCall bool

	// Stays says that the process makes calls for others until it is told to end.
	// What its first call needs is then found out while the catalog loads.
	Stays bool

	environment func() []string
	principal   capability.Principal // who started the program; zero: the local user
	closed      func() error         // called last by Close; nil: nothing is
	gateway     *mcpgateway.Gateway  // of another App
}

// environ returns the whole environment where it is the process's own. A stand-in
// can only be asked for single names.
func (c Config) environ() []string {
	if c.environment == nil {
		return nil
	}
	return c.environment()
}

// withHome returns getenv with another KEN_HOME.
func withHome(getenv func(string) string, home string) func(string) string {
	return func(name string) string {
		if name == "KEN_HOME" {
			return home
		}
		return getenv(name)
	}
}

// An App is Ken, built and loaded. [Open] assigns its parts once; they are
// grouped by the wing of the program that they belong to.
type App struct {
	// Settings are what was said when Ken was opened. They never change: what
	// applies live is asked of effective.
	Settings  config.Config
	Places    dirs.Places
	Principal capability.Principal // the person who started the program
	Door      *door.Door           // all that callers may do with the parts

	knowParts
	findParts
	governParts
	runParts
	serverParts
	chatParts

	configFile string // that was named; empty: the usual ones
	log        *slog.Logger
	oneCall    bool
	getenv     func(string) string
	reporter   *trace.Reporter
	closers    closers
}

// knowParts are what capabilities exist.
type knowParts struct {
	Catalog *catalog.Catalog // all of it; Door shows the part that a caller may see
	Live    catalog.Live     // adds capabilities while the program runs
	own     *catalog.Catalog // the tools that are part of the program

	ofDatabases *source.Memory // the tools of the databases in ken.yaml; nil: there are none in this catalog

	// Reading lists where capabilities are read from, in order of precedence,
	// highest first.
	Reading []sources.Place
}

// findParts find and choose capabilities, and record what came of that.
type findParts struct {
	Vectors  *vectors.Keeper // finds by meaning
	recorder *door.Recorder
	tuner    tune.Tuner
	counter  atomic.Pointer[func(outcome.Event)] // counts what the recorder records; nil: it is not counted
}

// Open reads the configuration, builds everything and loads the catalog. What
// is wrong with single capabilities or sources does not make it fail; it is in
// the catalog's problems.
func Open(ctx context.Context, cfg Config) (*App, error) {
	if cfg.Getenv == nil {
		cfg.Getenv, cfg.environment = os.Getenv, os.Environ
	}
	if cfg.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("cannot find the working directory: %w; change to a folder that exists", err)
		}
		cfg.Dir = dir
	}
	if cfg.Home != "" {
		cfg.Getenv = withHome(cfg.Getenv, cfg.Home)
	}
	places, err := dirs.New(cfg.Getenv, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var a *App
	loader, err := reload.New(reload.Config{Places: places, File: cfg.ConfigFile, Fresh: func() error { return a.Replicas.Current() }, Changed: func(rules *policy.Rules, err error) { a.enforcer.Apply(rules, err) }})
	if err != nil {
		return nil, err
	}
	if cfg.principal.ID == "" {
		cfg.principal.ID = "local"
	}
	a = &App{Settings: loader.Start(), Places: places, Principal: cfg.principal, configFile: cfg.ConfigFile, getenv: cfg.Getenv}
	if cfg.closed != nil {
		a.closers.Add(cfg.closed)
	}
	a.observe, a.path = cfg.Observe, executors.ProgramPath(a.Settings.Extensions.Path, cfg.Getenv("PATH"))
	a.keepSecrets(cfg)
	if cfg.Stays {
		probeSandbox(a.Settings.Sandbox, &a.closers)
	}
	a.Vectors, err = vectors.New(vectors.Config{
		Given: cfg.Embedder, Start: a.Settings, Getenv: cfg.Getenv, Dir: filepath.Join(places.Cache, "vectors"),
		Catalog: func() *catalog.Catalog { return a.Catalog }, OnClose: a.closers.Add, Stays: cfg.Stays,
	})
	a.tuner.Current = loader.Settings
	a.enforcer = runner.Enforcer{
		Runner: a.runner.Peek, Rules: a.Rules, Lookup: a.capability, Log: a.log,
		Disabled: func(ctx context.Context) func(*capability.Capability) bool { return a.Extensions.Disabled(ctx) },
	}
	a.govern(loader)
	if err == nil {
		a.Extensions = a.newExtensions()
		err = a.prepareRunning(cfg)
	}
	if err == nil {
		err = a.prepareServers(cfg)
	}
	if err == nil {
		a.prepareTalking(cfg)
		a.reporter = a.newReporter()
		a.plugins, err = plugins.Start(ctx, cfg.Plugins, a.closers.Add)
	}
	if err == nil && cfg.Servers && cfg.Briefly {
		a.Servers.ListFirst(ctx, cfg.Targets...)
	} else if err == nil && cfg.Servers {
		a.Servers.List(ctx)
	}
	if err == nil {
		err = a.build(cfg)
	}
	if err == nil {
		err = a.Catalog.Load(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if cfg.Embedder != nil {
		a.Vectors.Start()
	}
	return a, nil
}

func (a *App) build(cfg Config) error {
	s := sources.NewPlanner(sources.Config{Settings: a.Settings.Catalog, Places: a.Places, Cache: parseCache(a.Places), OwnTools: executors.BuiltinTools})
	if len(cfg.Catalogs) > 0 {
		s.Only(cfg.Dir, cfg.Catalogs)
	} else {
		s.Usual()
	}
	for _, src := range a.Servers.Sources() {
		s.Add(src, sources.Place{Trust: capability.TrustUser, Why: "an MCP server that you named"})
	}
	for _, extra := range append(a.plugins.Sources(), cfg.Sources...) {
		s.Add(extra, sources.Place{Trust: capability.TrustUser, Why: "given by the program"})
	}
	if list := a.functions.Tools(); len(list) > 0 {
		s.Add(executors.Memory("functions", capability.TrustUser, list), sources.Place{Trust: capability.TrustUser, Why: "functions of the program"})
	}
	if len(cfg.Catalogs) == 0 { // they replace every source
		list := executors.DatabaseTools(a.Settings.Databases)
		a.ofDatabases = executors.Memory("databases", capability.TrustUser, list)
		if len(list) > 0 {
			s.Add(a.ofDatabases, sources.Place{Trust: capability.TrustUser, Why: "databases that ken.yaml names"})
		}
	}
	made := source.NewMemory("made at run time", capability.TrustUser)
	s.Add(made, sources.Place{Trust: capability.TrustUser, Why: "made while the program runs"})
	built, err := s.Build()
	for _, c := range built.Close {
		a.closers.Add(c)
	}
	if err != nil {
		return err
	}
	a.Reading = built.Places
	list := built.Sources
	if a.gateway != nil {
		list = append(list, a.Servers.ProblemSource(s.FreeName("mcp")))
	}
	pins := a.Settings.Catalog.Pins
	machine := catalog.ThisMachine()
	onPath := machine.HasBin // what other agents run
	programs := executor.NewPrograms(a.path, a.Places.Workspace, filepath.Join(a.Places.Home, "extensions")).Within(sandbox.Requirement(a.Settings.Sandbox.Require))
	machine.HasBin = func(name string) bool { return onPath(name) || programs.Has(name) }
	machine.Programs = func() func(*capability.Capability) string { return executors.UnusablePrograms(programs) }
	machine.HasSecret = func(name string) bool { return cfg.Getenv(name) != "" || a.Secrets.Has(name) }
	machine.Unrun = executors.Unrunnable(a.plugins, a.databases)
	if a.own, err = executors.BuiltinCatalog(context.Background()); err != nil {
		return err
	}
	mentions := sources.Mentions(a.Settings)
	if len(cfg.Catalogs) == 0 { // they replace what rules are about
		var skills []string
		for _, s := range reload.BuiltinSkills() {
			skills = append(skills, s.ID)
		}
		mentions = append(mentions, sources.RuleMentions(a.Settings, skills)...)
	}
	c, err := catalog.New(catalog.Config{
		Own:     a.own.Snapshot().CallableIDs(),
		Sources: list, Fallback: built.Fallback, Pins: pins, Overrides: a.Settings.Catalog.Overrides,
		WorkspaceBodies: a.Settings.Capabilities.AllowWorkspaceCards,
		SeedSanitizer:   a.Settings.Catalog.Sanitizer == config.SanitizeSeed,
		Mentions:        mentions,
		Off:             a.Extensions.Off,
		Attachment:      ranking.IndexedBy(indexer(a.Vectors.Index(), a.Settings.Discovery, a.Places)),
		Machine:         machine,
	})
	if err != nil {
		return err
	}
	a.Catalog, a.lookup.Catalog, a.lookup.Builtin = c, c, a.own
	a.Live = catalog.Live{Catalog: c, Source: made}
	pinPolicy := func() pin.Policy { return mcpservers.PinPolicy(a.effective().MCP) }
	a.ToolReviews = toolreview.New(toolreview.Config{
		Servers: a.Servers, Definitions: a.definitions, Pins: a.serverParts.pins.Get, Policy: pinPolicy, Catalog: c, Log: a.log,
	})
	if a.Door, err = a.finding(cfg, c); err != nil {
		return err
	}
	a.Commands = commands.New(commands.Config{Catalog: c, Own: a.own, Door: a.Door, Owner: a.Principal, NoRules: a.noRules, Lookup: a.lookup.Find})
	return nil
}

// parseCache returns where parsed catalogs are kept. A directory that cannot be used
// costs speed, and no capability.
func parseCache(places dirs.Places) *parsecache.Cache {
	return &parsecache.Cache{Dir: filepath.Join(places.Cache, "catalog")}
}

// View takes the catalog as a model sees it that works for the person who
// started the program.
func (a *App) View() door.View { return a.Door.View(a.Principal) }

// OperatorView takes the catalog as that person sees it: with what is hidden from
// models, and why.
func (a *App) OperatorView() door.View { return a.Door.OperatorView(a.Principal) }

// machineEvery is how often the catalog looks at the machine in any case.
const machineEvery = 30 * time.Second

// Watch keeps the catalog up to date until ctx ends, unless ken.yaml says not
// to, and clears up what is past its time.
func (a *App) Watch(ctx context.Context) error {
	a.Vectors.Start()
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	beside.Go(func() { a.tidy(ctx) })
	beside.Go(func() { a.Replicas.follow(ctx) })
	beside.Go(func() { a.watchServers(ctx) })
	beside.Go(func() { watchDatabases(ctx, a) })
	beside.Go(func() {
		a.Catalog.WatchMachine(ctx, machineEvery, func() uint64 { return a.Secrets.Changes()<<32 + executors.MissingFiles(a.databases()) })
	})
	beside.Go(func() { a.ToolReviews.Watch(ctx) })
	beside.Go(func() { a.Extensions.WatchVisibility(ctx, a.Rules) })
	beside.Go(func() { _ = a.MCP().Watch(ctx) }) // it ends with ctx
	beside.Go(func() { a.Door.Warm(ctx, a.Principal) })
	if a.Extensions.Required() {
		beside.Go(func() { a.Extensions.RecordChanged(ctx) })
	}
	if !a.Settings.Catalog.Watch {
		<-ctx.Done()
		return nil
	}
	return a.Catalog.Watch(ctx)
}

// Why explains an entry: what the configuration says about it, and what the
// catalog knows of it.
func (a *App) Why(e *door.Entry) []string {
	why, now := e.Why(), a.effective()
	names := func(key string, list []string, says string) {
		if slices.Contains(list, string(e.ID)) {
			_, origin, _ := now.Explain(key) // the key is one of ours
			why = slices.Insert(why, 0, fmt.Sprintf("%s names it (%s): %s", key, origin, says))
		}
	}
	names("capabilities.forceInclude", now.Capabilities.ForceInclude, "it is always shown")
	names("capabilities.exclude", now.Capabilities.Exclude, "it is never shown")
	for lost := range a.Catalog.Snapshot().Shadowed() {
		if lost.ID == e.ID && lost.Capability != e.Capability {
			why = append(why, fmt.Sprintf("%s (%s) has the same id and is not used%s", lost.Origin, lost.Trust, because(lost.Reasons)))
		}
	}
	if e.State == catalog.Quarantined && slices.ContainsFunc(e.Findings, mcpgateway.IsPinFinding) {
		why = append(why, fmt.Sprintf("to see what differs and accept it: ken extension review mcp:%s", e.Category))
	}
	return why
}

func because(reasons catalog.Reasons) string {
	if len(reasons) == 0 {
		return ""
	}
	return ": " + reasons.String()
}

// Close releases what Open took, and what was made since, the last first.
func (a *App) Close() error { return a.closers.Close() }
