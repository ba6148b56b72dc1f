package mcpgateway

import (
	"context"
	"errors"
	"slices"
	"sync"

	"ken/capability"
	"ken/internal/know/source/parsecache"
	"ken/internal/run/executor"
)

// A Gateway holds the back ends. Its methods may be called from any goroutine.
type Gateway struct {
	cfg    Config
	shelf  *shelf
	parsed *parsecache.Cache // what lists were parsed to
	faulty error             // of the folder for lists
	news   news

	folders executor.Folders // that arguments may name files in

	ctx    context.Context // of everything that runs
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	servers  map[string]*server
	order    []string
	sources  map[string]*watched
	draining map[*server]bool // replaced, with calls still on their way
	closed   bool
}

// New makes a gateway. It starts nothing.
func New(cfg Config) (*Gateway, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		cfg: cfg, servers: map[string]*server{}, sources: map[string]*watched{}, draining: map[*server]bool{},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	// Without its folder a gateway works; it lists every server again.
	if g.shelf, g.faulty = newShelf(cfg.CacheDir); g.faulty != nil {
		cfg.Log.Warn("lists of MCP servers are not kept", "error", g.faulty)
	}
	if g.shelf.dir != "" {
		g.parsed = &parsecache.Cache{Dir: g.shelf.dir}
	}
	g.Replace(cfg.Servers)
	return g, nil
}

// spawn runs f in a goroutine that Close waits for. It reports whether it did:
// not after Close.
func (g *Gateway) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(f)
	return true
}

// Replace takes a new set of definitions. Servers whose definition is as before
// go on undisturbed; calls on those that changed or went may end first. The
// caller asks for [Gateway.Sources] again where servers were added.
func (g *Gateway) Replace(list []Server) {
	before := map[string]*offer{}
	for _, s := range g.all() {
		before[s.def.Name] = s.offered()
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	next, order := map[string]*server{}, []string{}
	var gone, changed []*server
	var touched []*watched
	for _, def := range list {
		if err := checkName(def.Name); err != nil || next[def.Name] != nil {
			g.cfg.Log.Warn("an MCP server is left out: its name is taken or no name", "server", show(def.Name))
			continue
		}
		order = append(order, def.Name)
		s := g.serverLocked(def, before[def.Name])
		next[def.Name] = s
		if old := g.servers[def.Name]; old != s {
			if old != nil {
				changed = append(changed, old)
			}
			touched = append(touched, s.src)
		}
	}
	for name, old := range g.servers {
		if next[name] == nil {
			gone = append(gone, old)
			touched = append(touched, old.src)
		}
	}
	g.servers, g.order = next, order
	for _, old := range slices.Concat(gone, changed) {
		g.draining[old] = true
	}
	for _, w := range touched {
		w.serve(next[w.server])
	}
	g.mu.Unlock()
	for _, old := range slices.Concat(gone, changed) {
		old.retire()
	}
}

// serverLocked returns the server of a definition: the one there is where nothing
// changed. before is what the last of its name offered.
func (g *Gateway) serverLocked(def Server, before *offer) *server {
	def = def.filled()
	id := def.identity(g.shelf.salt)
	if old := g.servers[def.Name]; old != nil && old.id == id && sameRest(&old.def, &def) {
		return old
	}
	w := g.sources[def.Name]
	if w == nil {
		w = newWatched(g, def.Name)
		g.sources[def.Name] = w
	}
	return &server{g: g, src: w, def: def, id: id, broken: def.check(), heir: before, backs: map[key]*backend{}, given: def.secrets()}
}

// sameRest compares what identity does not cover.
func sameRest(a, b *Server) bool {
	return a.Scope == b.Scope && a.Timeout == b.Timeout && a.StartTimeout == b.StartTimeout && a.Concurrent == b.Concurrent &&
		slices.Equal(a.Networks, b.Networks) && slices.Equal(a.Include, b.Include) && slices.Equal(a.Exclude, b.Exclude) &&
		a.Disabled == b.Disabled && a.Held == b.Held && a.Foreign == b.Foreign && a.Trust == b.Trust && a.TrustHints == b.TrustHints && a.Origin == b.Origin
}

// find returns a server that may be used.
func (g *Gateway) find(name string) (*server, error) {
	g.mu.Lock()
	s, closed := g.servers[name], g.closed
	g.mu.Unlock()
	switch {
	case closed:
		return nil, &capability.Error{Kind: capability.Unavailable, Op: "call MCP server", Target: name, Err: errors.New("the gateway is closed")}
	case s == nil:
		return nil, &capability.Error{Kind: capability.NotFound, Op: "call MCP server", Target: name, Fix: "see ken doctor for the servers there are"}
	case s.def.Disabled:
		return nil, &capability.Error{
			Kind: capability.Unavailable, Op: "call MCP server", Target: name, Err: errors.New("disabled"),
			Rule: "mcp.servers." + name + ".disabled", Fix: "ken extension enable mcp:" + name,
		}
	case s.broken != nil:
		return nil, s.def.invalid(s.broken)
	}
	return s, nil
}

// all returns the servers in their order.
func (g *Gateway) all() []*server {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*server, 0, len(g.order))
	for _, name := range g.order {
		out = append(out, g.servers[name])
	}
	return out
}

// EndSession ends the back ends that only a session had.
func (g *Gateway) EndSession(session string) {
	if session == "" {
		return
	}
	for _, s := range g.all() {
		if s.def.Scope == ScopeSession {
			s.end(func(b *backend) bool { return b.key.session == session })
		}
	}
}

// Review asks the pins of a server again, after a person accepted or forgot
// tools, and lets the catalog know what came of it.
func (g *Gateway) Review(ctx context.Context, name string) error {
	s, err := g.find(name)
	if err != nil {
		return err
	}
	_, err = s.load(ctx, true)
	return err
}

// Close ends every process and connection, and returns when they are gone.
func (g *Gateway) Close() error {
	g.mu.Lock()
	already := g.closed
	g.closed = true
	var every []*server
	for _, s := range g.servers {
		every = append(every, s)
	}
	for s := range g.draining {
		every = append(every, s)
	}
	g.mu.Unlock()
	if !already {
		g.cancel()
		var wg sync.WaitGroup
		for _, s := range every {
			wg.Go(func() { s.end(func(*backend) bool { return true }) })
		}
		wg.Wait()
	}
	g.wg.Wait()
	return nil
}
