package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"ken/internal/duration"
	"ken/internal/serve/shim"
)

// ErrRunning says that a daemon listens already.
var ErrRunning = errors.New("a daemon runs already")

// A Listener is the user's socket. It is for one Serve.
type Listener struct {
	ln      net.Listener
	path    string
	id      fileID
	allowed func(net.Conn) (pid int, err error)
	once    sync.Once
	err     error
}

// Close stops listening and removes the socket; connections stay. It may be
// called many times. Serve calls it.
func (l *Listener) Close() error {
	l.once.Do(func() { l.err = l.letGo() })
	return l.err
}

// A Handler serves one client until it is done. The connection begins with
// what the client wrote; reading it ends when the client has closed its side.
// The handler need not close it.
//
// An error before the first byte is written is told to the shim, which prints
// it and exits: it must hold no secrets. Later ones are only logged.
//
// When ctx ends the handler finishes what runs and returns. After
// Config.Grace its connection is closed under it.
type Handler func(ctx context.Context, hello shim.Hello, conn net.Conn) error

// Config bounds a daemon. The zero value works.
type Config struct {
	Version string        // for people, in the greeting
	Idle    time.Duration // without clients, until Serve returns; 0: 10 minutes, negative: never
	Grace   time.Duration // for clients when ctx ends; 0: 10 s
	Hello   time.Duration // for a caller to say hello; 0: 5 s
	Clients int           // at once, callers included that say nothing yet; 0: 1024
	Log     *slog.Logger  // nil: nothing is logged

	// Refuse, where it is not nil, says why a process of this user is not
	// served; nil is none.
	Refuse func(pid int) error
}

func (c Config) filled() Config {
	if c.Idle == 0 {
		c.Idle = 10 * time.Minute
	}
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	if c.Hello == 0 {
		c.Hello = 5 * time.Second
	}
	if c.Clients == 0 {
		c.Clients = 1024
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Serve has handle serve every client of this user, each in a goroutine of its
// own, and closes the listener in the end. It returns nil
//
//   - when no client was there for the time Idle;
//   - when a shim asked the daemon to retire and the last client has gone. The
//     socket is free as soon as that is asked;
//   - when ctx has ended and all handlers have returned.
//
// It returns an error when listening itself breaks, or when a handler did not
// return though its connection was closed: such a one is left behind.
func (l *Listener) Serve(ctx context.Context, cfg Config, handle Handler) error {
	s := &server{
		l: l, cfg: cfg.filled(), handle: handle, retired: make(chan struct{}), broken: make(chan error, 1),
		conns: map[net.Conn]struct{}{},
	}
	s.build, s.made = shim.Build()
	// Handlers learn of the end from us, when the listener is closed.
	clients, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if s.cfg.Idle > 0 {
		s.idle = time.AfterFunc(s.cfg.Idle, s.bored)
		defer s.idle.Stop()
	}
	s.work.Go(func() { s.accept(clients) })
	done := make(chan struct{})
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.broken:
	case <-s.retired:
		go func() { s.work.Wait(); close(done) }()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
		}
	}
	l.Close()
	stop()
	return errors.Join(err, s.drain())
}

type server struct {
	l      *Listener
	cfg    Config
	handle Handler
	build  string
	made   int64

	retired chan struct{} // closed when the listener was let go on request or for want of clients
	broken  chan error    // why no more clients come
	work    sync.WaitGroup
	idle    *time.Timer // runs while there is no connection; nil: no limit

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	served int  // connections that a handler has
	going  bool // retired
}

// drain waits for the handlers for the time Grace, then closes their connections
// and waits as long again.
func (s *server) drain() error {
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	for range 2 {
		grace := time.NewTimer(s.cfg.Grace)
		select {
		case <-done:
			grace.Stop()
			return nil
		case <-grace.C:
		}
		s.mu.Lock()
		for conn := range s.conns {
			conn.Close()
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("stop the daemon: %d clients are still served %s after their connections were closed", len(s.conns), duration.Text(s.cfg.Grace))
}

// retire frees the socket. Those who are here stay.
func (s *server) retire() {
	s.mu.Lock()
	going := s.going
	s.going = true
	s.mu.Unlock()
	s.l.Close()
	if !going {
		close(s.retired)
	}
}

// bored retires unless someone came in the last moment. Who connects from here
// on finds the socket closed before a greeting, and starts another daemon.
func (s *server) bored() {
	s.mu.Lock()
	unused := len(s.conns) == 0
	s.mu.Unlock()
	if unused {
		s.cfg.Log.Info("no clients: the daemon ends", "after", s.cfg.Idle)
		s.retire()
	}
}

// accept takes connections until the listener is closed.
func (s *server) accept(ctx context.Context) {
	const least, most = 5 * time.Millisecond, time.Second
	pause := least
	for {
		conn, err := s.l.ln.Accept()
		switch {
		case err == nil:
			pause = least
			s.admit(ctx, conn)
			continue
		case errors.Is(err, net.ErrClosed):
			return
		case !temporary(err):
			s.broken <- fmt.Errorf("accept clients: %w", err)
			return
		}
		// Too many files are open: that passes.
		s.cfg.Log.Warn("accept clients", "err", err, "again in", pause)
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return
		}
		pause = min(2*pause, most)
	}
}

// temporary reports whether accepting may work later.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (s *server) admit(ctx context.Context, conn net.Conn) {
	s.mu.Lock()
	full := len(s.conns) >= s.cfg.Clients
	s.conns[conn] = struct{}{}
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	s.work.Go(func() {
		defer s.leave(conn)
		pid, err := s.l.allowed(conn)
		if err == nil && s.cfg.Refuse != nil {
			err = s.cfg.Refuse(pid)
		}
		if err != nil {
			s.cfg.Log.Warn("a caller is refused: only this user may connect", "err", err)
			return
		}
		if err := s.talk(ctx, conn, full); err != nil {
			s.cfg.Log.Warn("a client's connection ended", "err", err)
		}
	})
}

func (s *server) leave(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
	if len(s.conns) == 0 && s.idle != nil && !s.going {
		s.idle.Reset(s.cfg.Idle)
	}
}

func (s *server) greeting(full bool) shim.Greeting {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := shim.Greeting{V: shim.Protocol, Build: s.build, Made: s.made, Version: s.cfg.Version, PID: os.Getpid(), Clients: s.served, Stays: s.cfg.Idle < 0}
	if full {
		g.Error = fmt.Sprintf("it has %d clients, the most it takes; close some", s.cfg.Clients)
	}
	return g
}
