package mcpgateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/know/source/mcptools"
)

// A watched is what is known under one server's name, whatever definition it
// has at the time.
type watched struct {
	g      *Gateway
	name   string // of the source
	server string

	mu      sync.Mutex
	at      *server       // nil: no server has that name now
	version int           // counts what a catalog should look at
	changed chan struct{} // closed and replaced with each version
}

// A feed is the source of one server's name for one catalog.
type feed struct {
	*watched
	loaded int // version that the catalog has; mu guards it
}

var (
	_ capability.Watcher  = (*feed)(nil)
	_ capability.Detailer = (*feed)(nil)
)

func newWatched(g *Gateway, server string) *watched {
	return &watched{g: g, name: "mcp:" + server, server: server, changed: make(chan struct{})}
}

// Sources returns one source for each server that is not switched off, in their
// order, for one catalog. A source holds for as long as there is a server of its
// name, however that changes; one whose server went is empty.
func (g *Gateway) Sources() []capability.Source {
	var out []capability.Source
	for _, s := range g.all() {
		if !s.def.Disabled {
			out = append(out, &feed{watched: s.src})
		}
	}
	return out
}

// serve makes a server the one behind the source; nil takes it away.
func (w *watched) serve(s *server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = s
	w.tellLocked()
}

// announce says that what s offers has changed.
func (w *watched) announce(s *server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == s {
		w.tellLocked()
	}
}

func (w *watched) tellLocked() {
	w.version++
	close(w.changed)
	w.changed = make(chan struct{})
	w.g.news.tell()
}

// news counts the changes of everything that servers offer.
type news struct {
	mu      sync.Mutex
	version uint64
	changed chan struct{} // closed and replaced with each version; nil: no one waits
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.version++
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// Version counts the changes of what servers offer, prompts and resources too.
func (g *Gateway) Version() uint64 {
	g.news.mu.Lock()
	defer g.news.mu.Unlock()
	return g.news.version
}

// Next waits until the version is above after, and gives it.
func (g *Gateway) Next(ctx context.Context, after uint64) (uint64, error) {
	for {
		n := &g.news
		n.mu.Lock()
		if n.version > after {
			defer n.mu.Unlock()
			return n.version, nil
		}
		if n.changed == nil {
			n.changed = make(chan struct{})
		}
		changed := n.changed
		n.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Name returns the source's name: "mcp:" and the server's.
func (w *watched) Name() string { return w.name }

// Load returns what is known of the server without starting it.
func (w *feed) Load(ctx context.Context) (capability.Batch, error) {
	w.mu.Lock()
	s, version := w.at, w.version
	w.mu.Unlock()
	b, o, err := w.batch(ctx, s, true)
	if err != nil {
		return b, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// Judging it again may have announced what is in this very batch. Whatever
	// else came meanwhile is yielded.
	if latest := w.version; o != nil && w.at == s && s.offered() == o {
		version = latest
	}
	w.loaded = version
	return b, nil
}

// batch returns what a server brings, and the offer that it is.
func (w *watched) batch(ctx context.Context, s *server, again bool) (capability.Batch, *offer, error) {
	if s == nil || s.def.Disabled {
		return capability.Batch{}, nil, nil
	}
	if s.broken != nil {
		return capability.Batch{Problems: []capability.Problem{s.unusable()}}, nil, nil
	}
	o, err := s.load(ctx, again)
	if err != nil {
		return capability.Batch{}, nil, err
	}
	if o != nil {
		return o.batch(), o, nil
	}
	return capability.Batch{Problems: s.unlisted()}, nil, nil
}

// unusable says what is wrong with a definition.
func (s *server) unusable() capability.Problem {
	p := capability.Problem{
		Code: "mcp-server", Origin: s.origin(), Message: "the server " + s.def.Name + " cannot be used: " + s.broken.Error(), Fix: "fix mcp.servers." + s.def.Name,
	}
	if s.def.Held != "" {
		p.Code, p.Message, p.Fix = "mcp-held", p.Message+": "+s.def.Held, "ken extension review mcp:"+s.def.Name
	}
	return p
}

// unlisted says why nothing is known of a server.
func (s *server) unlisted() []capability.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []capability.Problem
	add := func(severity capability.Severity, code, message, fix string) {
		out = append(out, capability.Problem{Severity: severity, Code: code, Origin: s.origin(), Message: message, Fix: fix})
	}
	if s.damaged != nil {
		add(capability.Warning, "mcp-cache", fmt.Sprintf("Ken reads the lists of %s again: %v", s.def.Name, s.damaged), "")
	}
	if s.lastErr != nil && s.asleep {
		add(capability.Grave, "mcp-server", s.g.cfg.Redact(fmt.Sprintf("the server %s cannot be listed: %v", s.def.Name, s.lastErr)), "see ken doctor")
		return out
	}
	add(capability.Warning, "mcp-unlisted", fmt.Sprintf("the server %s was not listed yet; its tools appear once it has started", s.def.Name), "")
	return out
}

// Watch yields a batch after each change, and has the server listed that never
// was, or that had nothing the last time.
func (w *feed) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w.mu.Lock()
		seen := w.loaded
		w.mu.Unlock()
		var listed *server
		for {
			w.mu.Lock()
			s, version, changed := w.at, w.version, w.changed
			w.mu.Unlock()
			if version != seen {
				seen = version
				b, o, err := w.batch(ctx, s, false)
				if ctx.Err() != nil || !yield(b, err) {
					return
				}
				if o != nil {
					s.begin(time.Time{}) // the catalog has the result
				}
			}
			if s != nil && s != listed && !s.def.Disabled && s.unheard() {
				listed = s // once for each definition
				w.g.spawn(func() { s.background(ctx) })
			}
			select {
			case <-ctx.Done():
				return
			case <-w.g.ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

// Detail reads the schema of a capability.
func (w *watched) Detail(_ context.Context, c *capability.Capability) (capability.Detail, error) {
	w.mu.Lock()
	s := w.at
	w.mu.Unlock()
	gone := &capability.Error{Kind: capability.NotFound, Op: "read", Target: string(c.ID), Fix: "reload the catalog"}
	if s == nil {
		return capability.Detail{}, gone
	}
	o := s.offered()
	if o == nil || o.entries[c.ID] == nil {
		return capability.Detail{}, gone
	}
	e := o.entries[c.ID]
	object := e.object
	if object == nil {
		var err error
		if object, err = s.g.shelf.read(s.id, e.at); err != nil {
			object = nil
		}
	}
	if d, err := mcptools.Detail(c, object); err == nil {
		return d, nil
	}
	return s.search(c)
}

// search looks for a tool in the whole file, which another process may have
// written again.
func (s *server) search(c *capability.Capability) (capability.Detail, error) {
	conflict := &capability.Error{
		Kind: capability.Conflict, Op: "read", Target: string(c.ID), Err: errors.New("the tool changed since it was loaded"), Fix: "reload the catalog",
	}
	s.mu.Lock()
	l := s.kept
	s.mu.Unlock()
	if l == nil {
		l, _ = s.g.shelf.load(s.id)
	}
	if l == nil {
		return capability.Detail{}, conflict
	}
	for i := range l.tools {
		if f, err := mcptools.Split(l.tool(i)); err == nil && f.Name == c.Name {
			if d, err := mcptools.Detail(c, l.tool(i)); err == nil {
				return d, nil
			}
		}
	}
	return capability.Detail{}, conflict
}
