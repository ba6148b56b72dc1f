package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/mcpsession"
)

// A Server serves any number of clients. It is safe for any number of
// goroutines.
type Server struct {
	cfg   Config
	log   *slog.Logger
	key   []byte // seals what travels through clients; new with each process
	about []byte // the _meta of an answer that has no other: which server it is from
	lobby lobby
	now   func() time.Time // when questions were asked and answered

	mu        sync.Mutex
	audiences map[string]*audience
	endpoints map[*endpoint]struct{}
	guests    *mcpsession.Sessions
	tasks     tasks

	answered atomic.Pointer[Answered]
}

// New makes a Server. It starts nothing.
func New(cfg Config) *Server {
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = 4 << 20
	}
	if cfg.MaxSessions <= 0 {
		cfg.MaxSessions = 1024
	}
	if cfg.Idle <= 0 {
		cfg.Idle = 30 * time.Minute
	}
	if cfg.TaskAfter <= 0 {
		cfg.TaskAfter = 15 * time.Second
	}
	if cfg.Intents == nil {
		cfg.Intents = func() []string { return nil }
	}
	s := &Server{cfg: cfg, log: cfg.Log, key: make([]byte, 32), now: time.Now, audiences: map[string]*audience{}, endpoints: map[*endpoint]struct{}{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if _, err := rand.Read(s.key); err != nil {
		panic(err) // it does not fail on any system that Go runs on
	}
	about, err := json.Marshal(mcp.Meta{mcp.MetaKeyServerInfo: s.implementation()})
	if err != nil {
		panic(err) // it is made of texts
	}
	s.about = about
	s.guests = mcpsession.New(cfg.MaxSessions, cfg.Idle)
	return s
}

// implementation is what Ken says of itself.
func (s *Server) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "ken", Version: s.cfg.Version}
}

// An audience is what all sessions of one principal share.
type audience struct {
	s   *Server
	who capability.Principal
	key string

	making  sync.Mutex // one menu at a time, with what it is made of
	natives map[capability.ID]native

	mu     sync.Mutex
	menus  map[string]*menu
	inside map[string]bool // names and ids of tools that are part of Ken
	lists  *offerings

	web       sync.Once
	stateful  *endpoint
	stateless *endpoint
}

// maxAudiences is how many principals are remembered.
const maxAudiences = 1024

func (s *Server) audience(who capability.Principal) *audience {
	key := audienceKey(who)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.audiences[key]
	if a == nil {
		if len(s.audiences) >= maxAudiences {
			s.forgetIdle()
		}
		a = &audience{s: s, who: who, key: key, menus: map[string]*menu{}}
		s.audiences[key] = a
	}
	return a
}

// forgetIdle drops principals without a connection.
func (s *Server) forgetIdle() {
	busy := map[*audience]bool{}
	for ep := range s.endpoints {
		if ep.inUse() {
			busy[ep.audience] = true
		}
	}
	for key, a := range s.audiences {
		if !busy[a] {
			delete(s.audiences, key)
			delete(s.endpoints, a.stateful)
			delete(s.endpoints, a.stateless)
		}
	}
}

// view is what the principal may see and call now.
func (a *audience) view() door.View {
	return a.s.cfg.Door.ViewFor(door.Viewer{Principal: a.who, Surface: "mcp"})
}

// has reports whether a name or an id is of a tool that is part of Ken.
func (a *audience) has(v door.View, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inside == nil {
		a.inside = map[string]bool{}
		for e := range v.Own() {
			a.inside[e.Name], a.inside[string(e.ID)] = true, true
			for _, alias := range e.Aliases {
				a.inside[alias], a.inside[string(capability.MakeID(e.Kind, alias))] = true, true
			}
		}
	}
	return a.inside[name]
}

// Serve speaks with one client over a stream until either side ends it or ctx
// does; then rw is closed. The stream itself says who the principal is: it needs
// no token. An end by the client, or by ctx, is no error.
func (s *Server) Serve(ctx context.Context, who capability.Principal, rw io.ReadWriteCloser, hello Hello) error {
	defer rw.Close()
	if who.ID == "" {
		return &capability.Error{Kind: capability.Denied, Op: "serve", Target: "a client", Err: errors.New("missing principal"), Fix: "say who does"}
	}
	sess := &session{id: hello.Session}
	if sess.id == "" {
		sess.id = "mcp-" + rand.Text()
	}
	ep := s.endpoint(s.audience(who), sess, false)
	ep.asked = hello.Surface
	s.enlist(ep)
	defer s.leave(ep, sess)
	calls, rest := newLane(ctx, ep, rw)
	defer calls.close()
	defer rw.Close() // before that, so that reading ends
	ss, err := ep.sdk.Connect(ctx, rest, nil)
	if err != nil {
		return &capability.Error{Kind: capability.Unavailable, Op: "serve", Target: "a client", Err: err}
	}
	calls.open(ss, rw)
	// A reader is woken by the end of the stream, and calls that run end
	// with it.
	stop := context.AfterFunc(ctx, func() { rw.Close() })
	defer stop()
	err = ss.Wait()
	ss.Close()
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

func (s *Server) enlist(ep *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints[ep] = struct{}{}
}

func (s *Server) leave(ep *endpoint, sess *session) {
	s.mu.Lock()
	delete(s.endpoints, ep)
	s.mu.Unlock()
	s.over(sess)
}

// over ends a session.
func (s *Server) over(sess *session) {
	sess.end()
	if s.cfg.EndSession != nil {
		s.cfg.EndSession(sess.id)
	}
}

// Watch tells clients when what they have listed is no longer so, until ctx
// ends. Without it they learn of changes when they list again.
func (s *Server) Watch(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() {
		// Only that something is different matters here, not what.
		who := capability.Principal{ID: "mcp"}
		after := s.cfg.Door.View(who).Stats().Version
		for {
			next, err := s.cfg.Door.Next(ctx, who, after)
			if err != nil {
				return
			}
			after = next.View.Stats().Version
			wake()
		}
	})
	if s.cfg.Backends != nil {
		wg.Go(func() {
			for after := uint64(0); ; {
				next, err := s.cfg.Backends.Next(ctx, after)
				if err != nil {
					return
				}
				after = next
				wake()
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			s.tell(ctx)
		}
	}
}

// tell looks whose lists have changed.
func (s *Server) tell(ctx context.Context) {
	s.mu.Lock()
	all := make([]*endpoint, 0, len(s.endpoints))
	for ep := range s.endpoints {
		all = append(all, ep)
	}
	s.mu.Unlock()
	fresh := map[*audience]bool{}
	for _, ep := range all {
		if !fresh[ep.audience] {
			fresh[ep.audience] = true
			ep.refresh(ctx)
		}
		ep.tell()
	}
}

// refresh brings the lists up to date that were asked for. All sessions
// of a principal are then compared with them.
func (a *audience) refresh(ctx context.Context) {
	v := a.view()
	for _, surface := range [...]string{direct, bridge, direct + withApps, bridge + withApps} {
		if a.known(surface) == nil {
			continue
		}
		if _, err := a.menuFor(ctx, a.viewOf(surface), surface); err != nil {
			a.s.log.Warn("the menu is as it was", "surface", surface, "why", err)
		}
	}
	a.offerings(v)
}

// hash identifies a list as it was last made; it is empty where no client has
// asked for it.
func (a *audience) hash(k kind, surface string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m, l := a.menus[surface], a.lists; {
	case k == tools && m != nil:
		return m.hash
	case k == prompts && l != nil:
		return l.prompts.hash
	case k == resources && l != nil:
		return l.resources.hash + l.templates.hash
	}
	return ""
}
