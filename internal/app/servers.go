package app

import (
	"context"
	"path/filepath"
	"sync"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/dirs"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/govern/policy"
	"ken/internal/lazy"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers"
	"ken/internal/run/mcpservers/definitions"
	"ken/internal/run/mcpservers/statusfile"
	"ken/internal/run/mcpservers/toolreview"
	"ken/internal/run/sandbox"
	"ken/internal/serve/auth"
	"ken/internal/serve/mcpserver"
)

// serverParts are the clients of Ken, and the MCP servers that Ken uses.
type serverParts struct {
	Clients     *connect.Connector  // connects clients with Ken
	Servers     *mcpservers.Servers // the MCP servers behind Ken
	ToolReviews *toolreview.Reviews // the tools and definitions of those servers that wait for review

	gateway     *mcpgateway.Gateway // of Servers
	pins        lazy.Value[*pin.Desk]
	definitions *definitions.Pins

	mcpOnce   sync.Once
	mcpServer *mcpserver.Server
}

// prepareServers makes the gateway, which starts nothing.
func (a *App) prepareServers(cfg Config) (err error) {
	a.Clients = connect.NewConnector(connect.ConnectorConfig{
		ServerFile: mcpservers.File(a.Places), RuleFile: config.ClientRulesFile(a.Places), RecordDir: filepath.Join(a.Places.State, "connect"), UserHome: a.Places.UserHome, Getenv: a.getenv,
		KenHome: a.Places.MovedHome(a.getenv), Addr: a.Settings.Serve.Addr, Secrets: a.Secrets, Log: a.log,
		RemoveToken: func(client string) (bool, error) { return auth.RemoveAgent(a.Places.State, client) },
	})
	a.serverParts.pins.Build = func() (*pin.Desk, error) {
		return a.openPins(func() pin.Policy { return mcpservers.PinPolicy(a.effective().MCP) }, a.Servers.PlainNames)
	}
	defined := &lazy.Value[*pin.Desk]{Build: func() (*pin.Desk, error) { // no setting accepts a definition
		return a.openPins(nil, func() bool { return false })
	}}
	a.definitions = definitions.New(definitions.Config{
		Desk: defined.Get, Key: func() (audit.Key, error) { return audit.LoadKey(a.Archive.KeyFile) }, Reviewers: a.Settings.Approval.Approvers,
	})
	gateway := a.gatewayConfig()
	gateway.CacheDir, gateway.Workspace = filepath.Join(a.Places.Cache, "mcp"), a.Places.Workspace
	gateway.Pins, gateway.Idle = mcpservers.LazyPinner(a.serverParts.pins.Get), a.Settings.MCP.Idle
	if gateway.Idle == 0 {
		gateway.Idle = -1 // for ever, and not the default
	}
	gateway.DenySampling = func() bool { return a.Rules().Denies(policy.PermLLM) }
	a.Servers, err = mcpservers.New(mcpservers.Config{
		Places: a.Places, ConfigFiles: a.Settings.Files(), Operator: a.Principal,
		Settings: a.effective,
		Latest:   func() *config.Config { return a.loader.Latest().Settings },
		Gateway:  gateway, None: len(cfg.Catalogs) > 0 && cfg.gateway == nil, Shared: cfg.gateway, // a catalog that is named stands for everything
		Definitions: a.definitions, Secrets: a.Secrets, Redact: a.Redactor.Update, Hold: a.Redactor.Hold, Getenv: a.getenv, Record: a.record, Log: a.log,
	})
	if err != nil {
		return err
	}
	a.gateway = a.Servers.Gateway()
	a.closers.Add(a.Servers.Close)
	return nil
}

// gatewayConfig returns how servers are confined, and how many tools are read of
// each. Servers are told of no folders
// outside of calls: a server that is told of some works with those instead of
// the ones in its definition.
func (a *App) gatewayConfig() mcpgateway.Config {
	return mcpgateway.Config{
		Path: a.path, Work: a.private().ServerWork(), Hide: a.private().Folders(), HideFiles: a.private().Files(),
		Require: sandbox.Requirement(a.Settings.Sandbox.Require), Limits: mcpservers.Limits(a.Settings.Sandbox), MaxTools: a.Settings.MCP.MaxTools, Version: Version(),
		Redact: func(s string) string {
			a.Redactor.Update()
			return a.Redactor.Held(s)
		},
		Redactor: func() func(string) string {
			a.Redactor.Update()
			return a.Redactor.Held
		},
	}
}

// openPins opens the desk that keeps pins.
func (a *App) openPins(policy func() pin.Policy, plain func() bool) (*pin.Desk, error) {
	s, err := a.store.Get()
	if err != nil {
		return nil, err
	}
	return pin.New(s, pin.Config{
		Policy: policy, Plain: plain, Reviewers: a.Settings.Approval.Approvers, Reserved: capability.OwnTools(), Log: a.record,
	})
}

// statusDir is where each process publishes the status of its servers.
func statusDir(places dirs.Places) string { return filepath.Join(places.State, "mcp-status") }

// watchServers keeps the servers up to date with their definitions, and
// publishes their status.
func (a *App) watchServers(ctx context.Context) {
	status := statusfile.NewWriter(statusDir(a.Places))
	defer status.Close()
	var failed error
	f := mcpservers.Follower{Add: a.Catalog.Add, Observe: func(list []mcpgateway.Status) {
		if err := status.Update(list); err != nil && failed == nil {
			failed = err // once is enough
			a.log.Warn("the doctor will not see how MCP servers stand", "error", err)
		}
	}}
	for _, p := range a.Reading {
		f.Known = append(f.Known, p.Name)
	}
	a.Servers.Follow(ctx, f)
}
