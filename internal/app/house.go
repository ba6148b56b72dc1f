package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A House keeps Ken open for clients that work in different folders: one App
// for each folder and set of flags, and one set of MCP servers for all that
// have the same flags. Its methods are safe for any number of goroutines.
type House struct {
	ctx  context.Context
	idle time.Duration

	mu     sync.Mutex
	closed bool
	rooms  map[string]*room
	work   sync.WaitGroup
}

// A room is one App, and who is in it.
type room struct {
	ready  chan struct{} // closed when app or err is there
	app    *App
	err    error
	stop   func() // ends its watching, and waits for that
	guests int
	owner  bool        // its servers are those of others too: it stays
	leave  *time.Timer // that closes it, while nobody is in it
}

// NewHouse makes a House whose Apps are watched until ctx ends. One that nobody
// was in for the time idle is closed; zero keeps all.
func NewHouse(ctx context.Context, idle time.Duration) *House {
	return &House{ctx: ctx, idle: idle, rooms: map[string]*room{}}
}

// Enter returns the App of a configuration, and opens it for the first who asks.
// done must be called once the caller is through with it.
func (h *House) Enter(ctx context.Context, cfg Config) (a *App, done func(), err error) {
	flags := cfg.ConfigFile + "\x00" + strings.Join(cfg.Catalogs, "\x00")
	key := cfg.Dir + "\x00" + flags
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, nil, errors.New("the program is closing; ask again in a moment")
	}
	r, there := h.rooms[key]
	if !there {
		r = &room{ready: make(chan struct{})}
		h.rooms[key] = r
	}
	r.guests++
	if r.leave != nil {
		r.leave.Stop()
		r.leave = nil
	}
	h.mu.Unlock()
	if !there {
		h.work.Go(func() { h.open(key, r, flags, cfg) })
	}
	select {
	case <-r.ready:
	case <-ctx.Done():
		h.out(key, r)
		return nil, nil, context.Cause(ctx)
	}
	if r.err != nil {
		h.out(key, r)
		return nil, nil, r.err
	}
	return r.app, sync.OnceFunc(func() { h.out(key, r) }), nil
}

// open fills a room. The first with its flags owns the servers.
func (h *House) open(key string, r *room, flags string, cfg Config) {
	defer func() {
		close(r.ready)
		h.mu.Lock()
		defer h.mu.Unlock()
		if r.guests == 0 { // whoever wanted it has gone away
			h.vacant(key, r)
		}
	}()
	if cfg.environment == nil {
		cfg.environment = os.Environ
	}
	if owner := h.owner(r, flags); owner != nil {
		<-owner.ready
		if owner.app != nil {
			cfg.gateway = owner.app.gateway
		}
	}
	if r.app, r.err = Open(h.ctx, cfg); r.err != nil {
		return
	}
	ctx, cancel := context.WithCancel(h.ctx)
	watched := make(chan struct{})
	r.stop = func() { cancel(); <-watched }
	h.work.Go(func() {
		defer close(watched)
		if err := r.app.Watch(ctx); err != nil {
			r.app.log.Warn("watching the catalog ended", "error", err)
		}
	})
}

// owner returns the room whose servers serve these flags, or makes r it.
func (h *House) owner(r *room, flags string) *room {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, other := range h.rooms {
		if other.owner && strings.HasSuffix(key, "\x00"+flags) {
			return other
		}
	}
	r.owner = true
	return nil
}

// out is called for each that leaves.
func (h *House) out(key string, r *room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.guests--
	select {
	case <-r.ready:
		if r.guests == 0 {
			h.vacant(key, r)
		}
	default: // it is still being opened, and looked at then
	}
}

// vacant decides what becomes of a room that nobody is in. h.mu is held.
func (h *House) vacant(key string, r *room) {
	switch {
	case h.closed:
	case r.err != nil: // who comes next tries anew
		delete(h.rooms, key)
	case r.owner || h.idle <= 0:
	default:
		r.leave = time.AfterFunc(h.idle, func() { h.clear(key, r) })
	}
}

func (h *House) clear(key string, r *room) {
	h.mu.Lock()
	if r.guests > 0 || h.rooms[key] != r || h.closed {
		h.mu.Unlock()
		return
	}
	delete(h.rooms, key)
	h.mu.Unlock()
	r.stop()
	if err := r.app.Close(); err != nil {
		r.app.log.Warn("closing a workspace ended badly", "error", err)
	}
}

// Close closes every App, the owners of servers last. Nobody may be in them any
// more.
func (h *House) Close() error {
	h.mu.Lock()
	h.closed = true
	var rooms []*room
	for _, r := range h.rooms {
		if r.leave != nil {
			r.leave.Stop()
		}
		rooms = append(rooms, r)
	}
	h.mu.Unlock()
	for _, r := range rooms {
		<-r.ready
		if r.stop != nil {
			r.stop()
		}
	}
	h.work.Wait()
	slices.SortFunc(rooms, func(a, b *room) int {
		switch {
		case a.owner == b.owner:
			return 0
		case a.owner:
			return 1
		}
		return -1
	})
	var errs []error
	for _, r := range rooms {
		if r.app != nil {
			errs = append(errs, r.app.Close())
		}
	}
	return errors.Join(errs...)
}
