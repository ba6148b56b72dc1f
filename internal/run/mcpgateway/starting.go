package mcpgateway

import (
	"context"
	"time"
)

// freshFor is how long after its start a server is waited for. A server that
// takes longer is named but not waited for.
const freshFor = 5 * time.Second

// begin records when the first listing of a server started; the zero time means
// that it is over.
func (s *server) begin(at time.Time) {
	s.mu.Lock()
	changed := s.begun.IsZero() != at.IsZero()
	s.begun = at
	s.mu.Unlock()
	if changed && at.IsZero() {
		s.g.news.tell()
	}
}

// Starting returns the names of the servers whose tools are not known yet:
// those that are being listed for the first time, and those that were never
// listed. Servers that failed are not included.
func (g *Gateway) Starting() (starting, unlisted []string) {
	for _, s := range g.all() {
		s.mu.Lock()
		switch {
		case s.lastErr != nil || s.retired || s.def.Disabled || s.broken != nil:
		case !s.begun.IsZero(), s.current == nil && s.startsLocked():
			starting = append(starting, s.def.Name)
		case s.current == nil:
			unlisted = append(unlisted, s.def.Name)
		}
		s.mu.Unlock()
	}
	return starting, unlisted
}

// startsLocked reports whether a back end of the server is starting. It is called
// with s.mu held.
func (s *server) startsLocked() bool {
	for _, b := range s.backs {
		if b.starting != nil {
			return true
		}
	}
	return false
}

// fresh reports whether a server is starting that started less than freshFor
// ago; of a named server, whether it is starting at all.
func (g *Gateway) fresh(name string) bool {
	for _, s := range g.all() {
		if name != "" && s.def.Name != name {
			continue
		}
		s.mu.Lock()
		is := !s.begun.IsZero() && s.lastErr == nil && !s.retired && (name != "" || now().Sub(s.begun) < freshFor)
		s.mu.Unlock()
		if is {
			return true
		}
	}
	return false
}

// Await waits until no server is fresh, or until ctx ends. With a name it waits
// for that server alone. It reports whether it waited at all.
func (g *Gateway) Await(ctx context.Context, name string) (waited bool) {
	for {
		version := g.Version()
		if !g.fresh(name) {
			return waited
		}
		waited = true
		if _, err := g.Next(ctx, version); err != nil {
			return waited
		}
	}
}
