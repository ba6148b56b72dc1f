package mcpservers

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/govern/pin"
	"ken/internal/run/mcpgateway"
)

// A Trial is how a server did that was started once and is not defined yet.
type Trial struct {
	Status mcpgateway.Status
	Tools  []*capability.Capability // as the server listed them

	lists map[string][]pin.Tool // by the key of their pins
}

// Definition returns a definition of ken.yaml in the form of the gateway, as it is
// after it was written there.
func (s *Servers) Definition(def config.Server) mcpgateway.Server {
	d := definitionReader{Config: &s.cfg, reading: reading{settings: s.cfg.Settings()}}
	return d.completed(configured(def))
}

// Try starts a server that is not defined yet, lists it, and ends it. It leaves
// nothing behind.
func (s *Servers) Try(ctx context.Context, def mcpgateway.Server) (_ *Trial, err error) {
	g := s.cfg.Gateway
	if err := os.MkdirAll(g.Work, 0o700); err != nil {
		return nil, err
	}
	if g.Work, err = os.MkdirTemp(g.Work, "trial-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(g.Work)
	seen := &observer{lists: map[string][]pin.Tool{}}
	g.Servers, g.CacheDir, g.Pins = []mcpgateway.Server{def}, "", seen
	g.Getenv, g.OAuth, g.Log = s.Value, s.login, s.cfg.Log
	gateway, err := mcpgateway.New(g)
	if err != nil {
		return nil, err
	}
	defer gateway.Close()
	t := &Trial{Status: gateway.List(ctx, def.Name)[0]}
	if t.Status.Err == "" {
		for _, source := range gateway.Sources() {
			batch, err := source.Load(ctx)
			if err != nil {
				return nil, err
			}
			for _, c := range batch.Capabilities {
				if c.Run != nil && c.Run.Runner == "mcp.call" { // and not one of Ken's for its resources and prompts
					t.Tools = append(t.Tools, c)
				}
			}
		}
	}
	t.lists = seen.lists
	return t, nil
}

// Pin pins what the server listed, in place of what was pinned for one of its name.
func (t *Trial) Pin(ctx context.Context, desk *pin.Desk, def mcpgateway.Server, by capability.Principal) error {
	if err := desk.Forget(ctx, pin.ServerKey(def.Name, def.Origin.Path), by); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(t.lists)) {
		if _, err := desk.Check(ctx, key, t.lists[key]); err != nil {
			return err
		}
	}
	return nil
}

// An observer accepts every list, and remembers it.
type observer struct {
	mu    sync.Mutex
	lists map[string][]pin.Tool
}

func (o *observer) Check(_ context.Context, server string, tools []pin.Tool) (map[string]pin.Verdict, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists[server] = slices.Clone(tools)
	out := map[string]pin.Verdict{}
	for _, t := range tools {
		out[t.Name] = pin.Verdict{State: pin.Accepted, Exposed: t.Name}
	}
	return out, nil
}
