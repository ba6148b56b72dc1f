package app

import (
	"context"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/run/result"
	"ken/internal/serve/mcpbridge"
	"ken/internal/serve/mcpserver"
)

// MCP returns the server for MCP clients, which is one for all of them.
func (a *App) MCP() *mcpserver.Server {
	a.mcpOnce.Do(func() { a.mcpServer = a.newMCP(mcpbridge.Approvals{Recorded: a.Approvals}.Answer) })
	return a.mcpServer
}

// newMCP makes a server. Without settle no client's word is taken for a
// person's.
func (a *App) newMCP(settle func(context.Context, capability.Principal, mcpserver.Reply) error) *mcpserver.Server {
	cfg := mcpserver.Config{
		Door: a.Door, Version: Version(), Log: a.log, Surface: string(a.Settings.MCP.Surface), Surfaces: a.Settings.MCP.Surfaces, Pinned: a.Settings.MCP.Pinned,
		Intents: func() []string { return a.Rules().IntentsAt(policy.SurfaceMCP) }, Ask: mcpbridge.Approvals{Recorded: a.Approvals}.Ask, Settle: settle, Hosts: a.Settings.Serve.Hosts,
		Exposed: mcpbridge.ExposedName, Page: mcpbridge.PageOf, Skills: &mcpbridge.Skills{},
		Whole: func(ctx context.Context, who capability.Principal, session, handle string) (capability.Result, error) {
			kept, err := a.results.Get()
			if err != nil {
				return capability.Result{}, err
			}
			text, err := kept.ReadAll(ctx, result.ScopeOf(capability.Call{Principal: who, Session: session}), handle)
			if err != nil {
				return capability.Result{}, err
			}
			return capability.Result{Parts: []capability.Part{{Text: text}}}, nil
		},
		Wait: func(ctx context.Context, ticket string) error {
			desk, err := a.Desk()
			if err != nil {
				return err
			}
			_, err = desk.Wait(ctx, ticket)
			return err
		},
		Signer: func() mcpserver.Signer {
			if g := a.Replicas.group.Load(); g != nil {
				return g
			}
			return nil
		},
		ApproveHint: func(ticket string) string { return "ken approve grant " + ticket },
		Jobs: mcpbridge.Jobs{
			Queue: a.Jobs, Enter: a.AddJob, Record: a.RecordJob, Redact: a.Redactor.Redact,
			Keep: func() time.Duration { return a.effective().Limits.Jobs.Keep },
		},
	}
	if a.gateway != nil {
		cfg.Backends, cfg.EndSession, cfg.Missing = mcpbridge.Backends{Gateway: a.gateway, Redactor: a.Redactor}, a.gateway.EndSession, a.Servers.Unset
		cfg.Instructions = a.Settings.MCP.Instructions
	}
	s := mcpserver.New(cfg)
	a.closers.Add(s.Close)
	return s
}
