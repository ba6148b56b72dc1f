package mcpservers

import (
	"context"
	"iter"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/definitions"
	"ken/internal/wholefile"
)

// every is how often the files that define servers are looked at.
const every = time.Second

// A Follower is told what [Servers.Follow] finds.
type Follower struct {
	Known   []string                                       // sources that need not be added
	Add     func(context.Context, capability.Source) error // adds the source of a server
	Observe func([]mcpgateway.Status)                      // is told the status of the servers, unless the gateway is shared
}

// Follow keeps the gateway up to date with the files that define servers, until
// ctx ends. It reads them also where the gateway is shared, because they say
// which servers apply to the workspace.
func (s *Servers) Follow(ctx context.Context, f Follower) {
	if s.gateway == nil {
		return
	}
	known := map[string]bool{}
	for _, name := range f.Known {
		known[name] = true
	}
	secrets := s.cfg.Secrets.Changes()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.Shared() {
			f.Observe(s.gateway.Status())
		}
		// The sources before the files: the files already define what is in
		// them, so that no server of one project is added for every folder.
		sources := s.gateway.Sources()
		changed := s.Reread(ctx)
		if now := s.cfg.Secrets.Changes(); now != secrets {
			secrets, changed = now, true
		}
		if changed && !s.Shared() {
			s.gateway.TryAgain()
		}
		for _, src := range s.inWorkspace(sources) {
			if known[src.Name()] {
				continue
			}
			known[src.Name()] = true
			if err := f.Add(ctx, src); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("an MCP server cannot be listed", "source", src.Name(), "error", err)
			}
		}
	}
}

// Reread takes over the definitions if a file, a setting or a pin of a
// definition that waits has changed, and reports whether one has.
func (s *Servers) Reread(ctx context.Context) bool {
	r := s.latest()
	if r.settings == s.cfg.Settings() && !slices.ContainsFunc(r.stamps, changed) && !s.pinsChanged(ctx, r) {
		return false
	}
	s.replace()
	return true
}

func changed(was wholefile.Stamp) bool { return !was.Same(wholefile.StampOf(was.Path)) }

// pinsChanged reports whether the pins of definitions that wait have changed.
func (s *Servers) pinsChanged(ctx context.Context, r *reading) bool {
	for file, was := range r.held {
		if now := s.cfg.Definitions.Revision(ctx, file); now != was || now == definitions.UnknownRevision {
			return true
		}
	}
	return false
}

// ProblemSource returns a source without capabilities. Its problems are those of
// the files that define servers.
func (s *Servers) ProblemSource(name string) capability.Source { return problemSource{s, name} }

type problemSource struct {
	servers *Servers
	name    string
}

var _ capability.Watcher = problemSource{}

// Name returns the name of the source.
func (p problemSource) Name() string { return p.name }

// Load returns the problems.
func (p problemSource) Load(context.Context) (capability.Batch, error) {
	return capability.Batch{Problems: p.servers.Problems()}, nil
}

// Watch yields the problems whenever they are others.
func (p problemSource) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		had := p.servers.Problems()
		for {
			r := p.servers.latest()
			if !slices.Equal(had, r.problems) {
				had = slices.Clone(r.problems)
				if !yield(capability.Batch{Problems: had}, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-r.replaced:
			}
		}
	}
}
