package mcpgateway

import "time"

// TryAgain has the servers that failed tried again, because what they lack may be
// there now: a secret that was set, a file that was mended. One that was never
// listed is started in the background; the others start with their next call,
// however long they were to be left alone. It waits for none of them.
func (g *Gateway) TryAgain() {
	for _, s := range g.all() {
		if s.resetBackoff() {
			g.spawn(func() { s.background(g.ctx) })
		}
	}
}

// resetBackoff forgets the failures of what does not run. It reports whether the
// server failed and was never listed.
func (s *server) resetBackoff() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastErr == nil || s.broken != nil || s.def.Disabled || s.retired {
		return false
	}
	for _, b := range s.backs {
		if b.link == nil {
			b.failures, b.until = 0, time.Time{}
		}
	}
	return s.current == nil
}
