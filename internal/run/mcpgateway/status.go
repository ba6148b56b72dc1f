package mcpgateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/executor"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/run/sandbox"
	"ken/internal/untrusted"
)

// A State says how a server stands.
type State string

// The states.
const (
	Cold       State = "cold" // nothing of it runs
	Starting   State = "starting"
	Ready      State = "ready"
	BackingOff State = "backing off" // it failed, and is left alone for a while
	Failed     State = "failed"      // it failed, and nothing tries again until it is called
	Disabled   State = "disabled"
)

// A Status is how one server stands, for people. Its texts are fit for a
// terminal and hold no secrets.
type Status struct {
	Name  string
	State State
	Kind  string // "stdio", "http" or "sse"

	Protocol, Title, Version string // as the server said when it was listed last
	Instructions             string

	Pid      int       // of the first back end that is a process
	Backends int       // that run
	Since    time.Time // the oldest of them runs
	Restarts int

	Tools, Prompts, Resources, Templates int
	Quarantined                          int       // of Tools
	Own                                  int       // tools of Ken's own for its resources and prompts, which are not in Tools
	Barred                               int       // how many of Prompts, Resources and Templates are barred
	Listed                               time.Time // zero: never

	Err, Fix, Rule string // of the last failure, until a start works
	Remedy         Remedy // what Fix says

	Noise       int // lines on standard output that were no messages
	NoiseSample string
	Stderr      string // the last of it

	// Isolation holds a stdio server; nil when it does not run, or is remote.
	Isolation *sandbox.Isolation

	Problems []capability.Problem // of what it lists
}

// Status returns how the servers stand, in their order.
func (g *Gateway) Status() []Status {
	var out []Status
	for _, s := range g.all() {
		out = append(out, s.status())
	}
	return out
}

func (s *server) status() Status {
	st := Status{Name: s.def.Name, Kind: "stdio", State: Cold}
	if s.def.URL != "" {
		st.Kind = "http"
		if s.def.SSE {
			st.Kind = "sse"
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.backs {
		if b.link != nil && over(b.link) {
			b.lostLocked(b.link)
		}
	}
	s.offeredLocked(&st)
	if st.Listed.IsZero() && s.damaged != nil {
		st.Problems = append(st.Problems, capability.Problem{Severity: capability.Warning, Code: "mcp-cache", Origin: s.origin(), Message: s.damaged.Error()})
	}
	err := s.lastErr
	if s.broken != nil {
		err = s.def.invalid(s.broken)
	}
	st.fail(err, s.g.cfg.Redact)
	if p, ok := s.missedProblem(); ok && err == nil && !st.Listed.IsZero() {
		st.Problems = append(st.Problems, p)
	}
	st.Restarts = s.restarts
	s.backsLocked(&st)
	switch {
	case s.def.Disabled:
		st.State = Disabled
	case s.broken != nil, st.State == Cold && err != nil:
		st.State = Failed
	}
	return st
}

func (s *server) offeredLocked(st *Status) {
	o := s.current
	if o == nil {
		return
	}
	info := o.head.Info
	st.Protocol, st.Version = untrusted.Line(info.Protocol, 40), untrusted.Line(info.Version, 80)
	st.Title, st.Instructions = untrusted.Line(info.Title, 120), untrusted.Line(info.Instructions, 400)
	if st.Title == "" {
		st.Title = untrusted.Line(info.Name, 120)
	}
	st.Listed = o.listed
	st.Prompts, st.Resources, st.Templates = len(o.head.Prompts), len(o.head.Resources), len(o.head.Templates)
	st.Barred = len(o.besides.barred)
	for _, e := range o.entries {
		if e.Run.Runner == runCall {
			st.Tools++
			if e.barred != "" {
				st.Quarantined++
			}
		} else {
			st.Own++
		}
	}
	st.Problems = slices.Clone(o.problems)
}

// backsLocked adds what the back ends are about.
func (s *server) backsLocked(st *Status) {
	for _, b := range s.backs {
		switch {
		case b.link != nil:
			st.State = Ready
			st.Backends++
			if st.Since.IsZero() || b.began.Before(st.Since) {
				st.Since = b.began
			}
			if n, sample := b.link.Noise(); n > 0 {
				st.Noise += n
				st.NoiseSample = untrusted.Line(s.g.cfg.Redact(sample), 200)
			}
			if b.proc != nil && st.Pid == 0 {
				st.Pid = b.proc.Pid()
				iso := b.proc.tool.Isolation()
				st.Isolation = &iso
				st.Stderr = untrusted.Line(s.g.cfg.Redact(b.proc.Stderr()), 400)
			}
		case b.starting != nil && st.State != Ready:
			st.State = Starting
		case st.State == Cold && now().Before(b.until):
			st.State = BackingOff
		}
	}
}

// A Remedy is what a person can do about a server that does not work.
type Remedy = link.Remedy

// FixAt returns Fix with the place of the server's definition.
func (st *Status) FixAt(place string) string {
	switch st.Remedy {
	case link.RunCommand:
		return "run the command of " + place + " by hand"
	case link.CheckAddress:
		return "check url and sign-in of " + place
	case link.Elsewhere:
		return st.Fix + "; it is " + place
	case link.Complete:
		return st.Fix
	}
	return "look at " + place
}

func (st *Status) fail(err error, redact func(string) string) {
	if err == nil {
		return
	}
	st.Err = err.Error()
	if e, ok := errors.AsType[*capability.Error](err); ok {
		st.Fix, st.Rule = e.Fix, e.Rule
		if st.Remedy, ok = link.RemedyOf(err); !ok && st.Fix != "" {
			st.Remedy = link.Elsewhere
		}
		if e.Err != nil {
			st.Err = e.Err.Error()
		}
	}
	st.Err = untrusted.Line(redact(st.Err), 1000)
}

// isolation says what holds a stdio server, or what will. What held the process that
// a call reached is with the call's result.
func (s *server) isolation(ctx context.Context) json.RawMessage {
	s.mu.Lock()
	for _, b := range s.backs {
		if b.proc != nil && b.link != nil {
			defer s.mu.Unlock()
			return b.proc.isolation
		}
	}
	s.mu.Unlock()
	return executor.Planned(ctx, s.g.cfg.Require, s.g.open(&s.def))
}

// held says what holds the process behind a link; "" for a remote server.
func (b *backend) held(l *link.Link) string {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.link != l || b.proc == nil {
		return ""
	}
	return b.proc.held
}

// Lists reports whether a server listed a tool when it was listed last.
func (g *Gateway) Lists(server, tool string) bool {
	for _, s := range g.all() {
		if o := s.offered(); s.def.Name == server && o != nil {
			return o.entries[mcptools.ID(server, tool)] != nil
		}
	}
	return false
}

// listAtOnce is how many servers are started at one time to be listed.
const listAtOnce = 8

// List starts and lists the servers that are named, or without names those that
// were never listed or had nothing, and says how each stands then. It returns when all have
// answered, failed or run out of their time.
func (g *Gateway) List(ctx context.Context, names ...string) []Status {
	chosen := slices.DeleteFunc(g.all(), func(s *server) bool { return !slices.Contains(names, s.def.Name) })
	if len(names) == 0 {
		chosen = g.unheard(ctx)
	}
	out := make([]Status, len(chosen))
	slots := make(chan struct{}, listAtOnce)
	var wg sync.WaitGroup
	for i, s := range chosen {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			if !s.def.Disabled {
				err = s.list(ctx)
			}
			out[i] = s.status()
			if err != nil && out[i].Err == "" {
				out[i].fail(err, s.g.cfg.Redact)
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		if !slices.ContainsFunc(chosen, func(s *server) bool { return s.def.Name == name }) {
			st := Status{Name: name, State: Failed}
			st.fail(&capability.Error{Kind: capability.NotFound, Op: "list MCP server", Target: name, Err: errors.New("server not found"), Fix: "see ken doctor for the servers there are"}, g.cfg.Redact)
			out = append(out, st)
		}
	}
	return out
}

// ListNew starts and lists the servers that were never listed or had nothing. It
// waits for at most brief, but for those that are named until they have answered,
// failed or run out of their time. The others go on starting.
func (g *Gateway) ListNew(ctx context.Context, brief time.Duration, names ...string) {
	short, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range g.unheard(ctx) {
		until := short
		if slices.Contains(names, s.def.Name) {
			until = ctx
		}
		wg.Go(func() { _ = s.list(until) }) // Status has the error
	}
	wg.Wait()
}

// unheard returns the servers that were never listed or had nothing.
func (g *Gateway) unheard(ctx context.Context) []*server {
	return slices.DeleteFunc(g.all(), func(s *server) bool {
		if s.def.Disabled {
			return true
		}
		_, err := s.load(ctx, false)
		return err != nil || !s.unheard()
	})
}
