package mcpgateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
)

// A server is one definition at work.
type server struct {
	g      *Gateway
	src    *watched
	def    Server // filled; not changed
	id     string
	given  []string // names of the secrets that the definition gives it
	broken error    // the definition cannot be used
	heir   *offer   // of the definition before; what is the same in it stays the same

	listing sync.Mutex // held while lists are judged, so that they are in turn

	mu      sync.Mutex // guards all below, and the fields of backs
	current *offer     // nil: never listed
	kept    *lists     // what current was made of, where no file holds it
	damaged error      // of the file
	backs   map[key]*backend
	retired bool // nothing new starts
	asleep  bool // the background gave up listing it

	// begun is when the first listing started; zero once the catalog has its
	// result, or the listing failed.
	begun time.Time

	restarts int
	lastErr  error // of the last start or end, until one works
}

// load returns what the server offers as far as that is known, judged again where
// again is set or it was not yet. It starts nothing.
func (s *server) load(ctx context.Context, again bool) (*offer, error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	s.mu.Lock()
	before, l := s.current, s.kept
	s.mu.Unlock()
	if before != nil && !again {
		return before, nil
	}
	if l == nil {
		var err error
		l, err = s.g.shelf.load(s.id)
		s.mu.Lock()
		s.damaged = err
		s.mu.Unlock()
	}
	if l == nil {
		return before, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.present(ctx, l, before)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, nil
}

// take puts lists that were just read in the place of those before.
func (s *server) take(ctx context.Context, info link.Info, got link.Lists) error {
	s.listing.Lock()
	defer s.listing.Unlock()
	l, err := newLists(s.def.Name, info, got, now(), s.g.cfg.Redactor())
	if err != nil {
		return err
	}
	s.mu.Lock()
	before := s.current
	s.mu.Unlock()
	if before == nil || before.sum != l.sum || s.kept != nil {
		s.keep(l)
	}
	s.present(ctx, l, before)
	s.saw(ctx, got.Raw, l.sum)
	return nil
}

// keep writes lists to their file, or holds them in memory.
func (s *server) keep(l *lists) {
	err := s.g.shelf.store(s.id, l)
	if err != nil {
		s.g.cfg.Log.Warn("lists of an MCP server are not kept", "server", s.def.Name, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged, s.kept = nil, nil
	if err != nil || s.g.shelf.dir == "" {
		s.kept = l
	}
}

// present judges lists and makes them the offer. s.listing is held.
func (s *server) present(ctx context.Context, l *lists, before *offer) {
	same := before
	if same == nil {
		same = s.heir
	}
	o := s.offer(ctx, l, same)
	s.mu.Lock()
	changed := !o.equal(before)
	s.current, s.asleep = o, false
	s.mu.Unlock()
	if changed {
		s.src.announce(s)
	}
}

// offered returns what is offered now; nil when it was never listed.
func (s *server) offered() *offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// list starts the server where it does not run, and reads its lists.
func (s *server) list(ctx context.Context) error {
	if s.broken != nil {
		return s.def.invalid(s.broken)
	}
	b, err := s.hold(s.listKey())
	if err != nil {
		return err
	}
	defer b.release()
	was := b.live()
	l, err := b.connect(ctx)
	if err != nil {
		return err
	}
	if was != l { // a start lists by itself
		return nil
	}
	return b.read(ctx, l)
}

// listKey is the back end that lists are read from when there is no call: one that
// runs, else one of its own that the first caller may have.
func (s *server) listKey() key {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, b := range s.backs {
		if b.link != nil && !over(b.link) {
			return k
		}
	}
	if s.def.Scope == ScopeShared {
		return key{}
	}
	return key{listing: true}
}

// unheard reports whether the server was never listed, or listed nothing,
// because it may still have been starting.
func (s *server) unheard() bool {
	o := s.offered()
	if o == nil {
		return true
	}
	for _, e := range o.entries {
		if e.Run.Runner == runCall {
			return false
		}
	}
	return len(o.head.Prompts)+len(o.head.Resources)+len(o.head.Templates) == 0
}

// background lists a server that is unheard, until it works or has failed too
// often. It returns when ctx ends.
func (s *server) background(ctx context.Context) {
	s.begin(now())
	defer func() {
		if s.unheard() {
			s.begin(time.Time{})
		}
	}()
	for try := range backgroundTries {
		if !s.unheard() {
			return
		}
		err := s.list(ctx)
		if err == nil || ctx.Err() != nil || capability.KindOf(err) == capability.Invalid || s.broken != nil {
			return
		}
		level := slog.LevelDebug // further tries mostly say the same
		if try == 0 {
			level = slog.LevelWarn
		}
		s.g.cfg.Log.Log(ctx, level, "an MCP server cannot be listed", "server", s.def.Name, "try", try+1, "error", err)
		if !wait(ctx, s.g.ctx, s.pause()) {
			return
		}
	}
	s.mu.Lock()
	s.asleep = true
	s.mu.Unlock()
	s.src.announce(s)
}

// backgroundTries is how often a server is started without a call.
const backgroundTries = 5

// retire ends a server that was replaced: back ends with calls on them when
// those are over.
func (s *server) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.end(func(b *backend) bool { return b.busy == 0 })
	s.forget()
}

// forget lets go of a replaced server once nothing of it runs.
func (s *server) forget() {
	s.mu.Lock()
	empty := s.retired && len(s.backs) == 0
	s.mu.Unlock()
	if empty {
		s.g.mu.Lock()
		delete(s.g.draining, s)
		s.g.mu.Unlock()
	}
}

// end stops the back ends that which, called with s.mu held, is true of.
func (s *server) end(which func(*backend) bool) {
	s.mu.Lock()
	var links []*link.Link
	for k, b := range s.backs {
		if !which(b) {
			continue
		}
		delete(s.backs, k)
		if l := b.stopLocked(); l != nil {
			links = append(links, l)
		}
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, l := range links {
		wg.Go(func() { s.shut(l) })
	}
	wg.Wait()
}

func (s *server) shut(l *link.Link) {
	if err := l.Close(); err != nil {
		s.g.cfg.Log.Warn("an MCP server does not end", "server", s.def.Name, "error", err)
	}
}

// mostBacks is how many back ends one server may have at a time.
const mostBacks = 256

// hold returns the back end of a key and counts the caller among those that use
// it; release undoes that. It starts nothing.
func (s *server) hold(k key) (*backend, error) {
	s.mu.Lock()
	b := s.backs[k]
	var idle *link.Link
	switch {
	case b != nil:
	case s.retired:
		s.mu.Unlock()
		return nil, &capability.Error{
			Kind: capability.Unavailable, Op: "call MCP server", Target: s.def.Name,
			Err: errors.New("the definition changed in the meantime"), Fix: "call again",
		}
	default:
		if b = s.adoptLocked(k); b == nil {
			var err error
			if idle, err = s.roomLocked(); err != nil {
				s.mu.Unlock()
				return nil, err
			}
			b = newBack(s, k)
			s.backs[k] = b
		}
	}
	b.busy++
	s.mu.Unlock()
	if idle != nil {
		s.shut(idle)
	}
	return b, nil
}

// adoptLocked reassigns the back end that was started for listing to a caller. It
// has not served a call yet, so it holds no data of another caller.
func (s *server) adoptLocked(k key) *backend {
	from := key{listing: true}
	b := s.backs[from]
	if b == nil || k.listing || b.login {
		return nil
	}
	delete(s.backs, from)
	b.key = k
	s.backs[k] = b
	return b
}

// roomLocked makes room for one more back end by stopping the one that was not
// used for longest. It returns its link, for the caller to close.
func (s *server) roomLocked() (*link.Link, error) {
	if len(s.backs) < mostBacks {
		return nil, nil
	}
	var oldest *backend
	for _, b := range s.backs {
		if b.busy == 0 && b.starting == nil && len(b.subs) == 0 && !now().Before(b.keep) && (oldest == nil || b.used.Before(oldest.used)) {
			oldest = b
		}
	}
	if oldest == nil {
		return nil, &capability.Error{
			Kind: capability.Unavailable, Op: "start MCP server", Target: s.def.Name,
			Err: fmt.Errorf("%d instances already run", len(s.backs)), Rule: "mcp.servers." + s.def.Name + ".scope", Fix: "end sessions, or set scope: shared",
		}
	}
	delete(s.backs, oldest.key)
	return oldest.stopLocked(), nil
}
