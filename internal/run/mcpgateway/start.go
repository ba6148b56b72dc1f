package mcpgateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/run/mcpgateway/link"
)

// connect returns the link, and starts one where there is none. Only one start is
// on at a time, and it goes on when a caller gives up.
func (b *backend) connect(ctx context.Context) (*link.Link, error) {
	s := b.s
	for {
		s.mu.Lock()
		if b.link != nil && over(b.link) {
			b.lostLocked(b.link)
		}
		switch {
		case b.stopped:
			s.mu.Unlock()
			return nil, b.unavailable(errors.New("stopped meanwhile"), "call again", "")
		case b.link != nil:
			l := b.link
			s.mu.Unlock()
			return l, nil
		case b.starting == nil && now().Before(b.until):
			err := b.restingLocked()
			s.mu.Unlock()
			return nil, err
		case b.starting == nil:
			b.starting = make(chan struct{})
			if !s.g.spawn(b.start) {
				b.starting = nil
				s.mu.Unlock()
				return nil, b.unavailable(errors.New("the gateway is closed"), "", "")
			}
		}
		done := b.starting
		s.mu.Unlock()
		select {
		case <-done:
			if err := b.failed(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, b.unavailable(fmt.Errorf("still starting: %w", context.Cause(ctx)), "call again", "mcp.servers."+s.def.Name+".timeout")
		}
	}
}

// failed returns the error of the start that was just waited for, if it failed.
func (b *backend) failed() error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.link != nil {
		return nil
	}
	return b.err
}

// restingLocked is the answer while the back end is left alone.
func (b *backend) restingLocked() error {
	left := b.until.Sub(now()).Round(10 * time.Millisecond)
	var cause error = fmt.Errorf("failed %d times; Ken starts it again in %s", b.failures, duration.Text(left))
	fix, rule := "", ""
	if e, ok := errors.AsType[*capability.Error](b.err); ok {
		fix, rule = e.Fix, e.Rule
		cause = fmt.Errorf("%w: %w", cause, e.Err)
	} else if b.err != nil {
		cause = fmt.Errorf("%w: %w", cause, b.err)
	}
	return b.unavailable(cause, fix, rule)
}

func (b *backend) unavailable(cause error, fix, rule string) error {
	return &capability.Error{Kind: capability.Unavailable, Op: "start MCP server", Target: b.s.def.Name, Err: cause, Fix: fix, Rule: rule}
}

// start opens a link and reads the lists, so that nothing is called before it
// was compared with what was accepted.
func (b *backend) start() {
	s := b.s
	ctx, cancel := context.WithTimeout(s.g.ctx, s.def.StartTimeout)
	defer cancel()
	l, proc, err := b.open(ctx)
	if err == nil {
		if err = b.read(ctx, l); err != nil && s.offered() != nil && !over(l) {
			s.g.cfg.Log.Warn("lists of an MCP server cannot be read; the last ones stand", "server", s.def.Name, "error", err)
			err = nil
		}
	}
	err = b.startError(ctx, err)
	s.mu.Lock()
	dead := b.startedLocked(l, proc, err)
	close(b.starting)
	b.starting = nil
	s.mu.Unlock()
	if dead {
		s.shut(l)
	} else if l != nil && err == nil {
		s.g.spawn(func() { b.watch(l) })
		b.subscribeAgain(l)
	}
}

// startError puts why a start failed into Ken's words. Whatever the cause, no
// call has left.
func (b *backend) startError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	cause, fix, rule := link.WithRemedy(err, link.Unknown), "see ken doctor", ""
	if e, ok := errors.AsType[*capability.Error](err); ok && e.Err != nil {
		cause, fix, rule = e.Err, e.Fix, e.Rule
	}
	if rule == "" {
		fix, cause = b.withMissed(cause, fix)
	}
	if ctx.Err() != nil && b.s.g.ctx.Err() == nil {
		cause = link.WithRemedy(fmt.Errorf("not ready after %s: %w", duration.Text(b.s.def.StartTimeout), cause), link.Elsewhere)
		fix, rule = "check what the server waits for, or give it more time", "mcp.servers."+b.s.def.Name+".startTimeout"
	}
	return b.unavailable(cause, fix, rule)
}

// startedLocked notes what came of a start. It reports whether the link, if there
// is one, is of no use.
func (b *backend) startedLocked(l *link.Link, proc *process, err error) (dead bool) {
	b.used = now()
	if err != nil {
		b.failures++
		b.err, b.s.lastErr = err, err
		b.until = now().Add(pause(b.failures))
		return l != nil
	}
	if b.stopped {
		return true
	}
	if b.link != nil || !b.began.IsZero() {
		b.s.restarts++
	}
	b.link, b.proc, b.began = l, proc, now()
	b.err, b.s.lastErr = nil, nil
	if b.busy == 0 {
		b.armLocked(b.patience())
	}
	return false
}

// pause is how long a back end is left alone after so many failures, with some
// chance in it, so that many do not start at once.
func pause(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	d := mostPause
	if failures < 8 {
		d = min(firstPause<<(failures-1), mostPause)
	}
	return d/2 + rand.N(d/2)
}

// pause returns how long the listing back end is left alone.
func (s *server) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	longest := firstPause
	for _, b := range s.backs {
		longest = max(longest, b.until.Sub(now()))
	}
	return longest
}

// open makes a link to the server.
func (b *backend) open(ctx context.Context) (*link.Link, *process, error) {
	s := b.s
	cfg := link.Config{
		Target: link.Target{Name: s.def.Name},
		Roots:  s.g.cfg.Roots(), ParkTime: parkTime, MaxTools: s.g.cfg.MaxTools,
		Changed: func(string) { b.changed(quiet) },
		Updated: b.updated,
		Log: func(level, logger string, data json.RawMessage) {
			s.g.cfg.Log.Debug("MCP server", "server", s.def.Name, "level", level, "logger", logger, "bytes", len(data))
		},
		ClientName: "ken", ClientVersion: s.g.cfg.Version, DenySampling: s.g.cfg.DenySampling,
	}
	var proc *process
	var refused error // the process could not even be started
	if s.def.URL == "" {
		cfg.Start = func(context.Context) (link.Process, error) {
			if refused != nil {
				return nil, refused // the link tries twice; this would be no different
			}
			p, err := s.g.launch(s.g.ctx, &s.def) // it outlives the start
			if err != nil {
				refused = s.def.invalid(err)
				return nil, refused
			}
			proc = p
			return p, nil
		}
	} else if err := b.address(&cfg); err != nil {
		return nil, nil, s.def.invalid(err)
	}
	l, err := link.Open(ctx, cfg)
	if err != nil && refused != nil {
		err = refused
	}
	return l, proc, err
}

// address makes out where a remote server is.
func (b *backend) address(cfg *link.Config) error {
	x := b.s.g.expander(&b.s.def)
	cfg.URL, cfg.SSE, cfg.Header = x.expand(b.s.def.URL), b.s.def.SSE, x.headers(&b.s.def)
	if err := x.err(); err != nil {
		return err
	}
	if _, err := parseURL(cfg.URL); err != nil {
		return err
	}
	def := b.s.def
	def.URL = cfg.URL
	login := b.s.g.cfg.OAuth(def, capability.Principal{Tenant: b.key.tenant, ID: b.key.principal})
	b.s.mu.Lock()
	b.login = login != nil
	b.s.mu.Unlock()
	switch {
	case login == nil:
	case cfg.SSE:
		cfg.Client = login.Bearer(nil)
	default:
		cfg.OAuth, cfg.Client = login, login.Client(nil)
	}
	return nil
}

// watch waits for the end of a link, notes why it came, and starts another where
// a caller waits for changes.
func (b *backend) watch(l *link.Link) {
	<-l.Done()
	b.s.mu.Lock()
	b.lostLocked(l)
	wanted := len(b.subs) > 0 && !b.stopped
	b.s.mu.Unlock()
	_ = l.Close() // what is left of it
	if wanted {
		b.revive()
	}
}

// lostLocked notes that a link is over, unless that was noted before.
func (b *backend) lostLocked(l *link.Link) {
	if b.link != l || l == nil {
		return
	}
	b.link = nil
	if now().Sub(b.began) >= steady {
		b.failures = 0
	}
	b.failures++
	// The first time it may start again at once: most servers that die do so
	// once.
	b.until = now().Add(pause(b.failures - 1))
	b.err = l.Err()
	b.s.lastErr = b.err
}

// changed reads the lists again once the server has been quiet.
func (b *backend) changed(after time.Duration) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	switch {
	case b.stopped:
	case b.stale != nil:
		b.again = true
	default:
		b.stale = time.AfterFunc(after, func() { b.s.g.spawn(b.refresh) })
	}
}

func (b *backend) refresh() {
	s := b.s
	if l := b.live(); l != nil {
		ctx, cancel := context.WithTimeout(s.g.ctx, s.def.StartTimeout)
		if err := b.read(ctx, l); err != nil && ctx.Err() == nil {
			s.g.cfg.Log.Warn("lists of an MCP server cannot be read", "server", s.def.Name, "error", err)
		}
		cancel()
	}
	s.mu.Lock()
	again := b.again
	b.stale, b.again = nil, false
	s.mu.Unlock()
	if again {
		b.changed(calm)
	}
}

// read reads the lists and makes them the server's. Where they are those that the
// server had, that is all.
func (b *backend) read(ctx context.Context, l *link.Link) error {
	var was *offer
	got, err := l.ListsUnless(ctx, func(raw [sha256.Size]byte) bool {
		was = b.s.known(ctx, raw)
		return was != nil
	})
	if err != nil {
		return err
	}
	if got.Same {
		if b.s.stands(was, l.Info(), got) {
			b.s.g.spawn(func() { b.recheck(l) })
			return nil
		}
		if got, err = l.Lists(ctx); err != nil {
			return err
		}
	}
	return b.s.take(ctx, l.Info(), got)
}

// doubt looks whether a server that let a call run out of time still answers,
// and ends it when it does not.
func (b *backend) doubt(l *link.Link) {
	b.s.g.spawn(func() {
		ctx, cancel := context.WithTimeout(b.s.g.ctx, doubtTime)
		defer cancel()
		err := l.Ping(ctx)
		if err == nil || b.s.g.ctx.Err() != nil {
			return
		}
		s := b.s
		s.mu.Lock()
		mine := b.link == l
		if mine {
			b.link = nil
			b.failures++
			b.until = now().Add(pause(b.failures))
			b.err = b.unavailable(fmt.Errorf("not responding: a call timed out and a ping was not answered within %s", duration.Text(doubtTime)), "restart it, or see its own log", "")
			s.lastErr = b.err
		}
		s.mu.Unlock()
		if mine {
			s.shut(l)
		}
	})
}
