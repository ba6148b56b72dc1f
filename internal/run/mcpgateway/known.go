package mcpgateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"ken/internal/govern/pin"
	"ken/internal/know/source/parsecache"
	"ken/internal/run/mcpgateway/link"
)

// Most servers list the same tools at each start. A call waits for the start, so what
// was judged before is not judged again: the list has the digest of the one that the
// offer was made of, as the store beside the pins has it, and the pins are those by
// which the offer was judged. Nothing in the folder of caches decides about it.

// standing returns how the server stands with the pins; the zero value where that is
// not known.
func (s *server) standing(ctx context.Context) pin.Standing {
	r, ok := s.g.cfg.Pins.(Recaller)
	if !ok {
		return pin.Standing{}
	}
	out, err := r.Standing(ctx, s.pinKey())
	if err != nil {
		return pin.Standing{} // it is told where the pins are asked
	}
	return out
}

// rawSum names a list of tools as it came, for this program: another may read it in
// another way.
func (s *server) rawSum(raw [sha256.Size]byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %x", parsecache.Build(), s.g.cfg.MaxTools, raw))
	return hex.EncodeToString(sum[:])
}

// known returns the offer that was made of a list of tools, if it still holds; nil
// otherwise.
func (s *server) known(ctx context.Context, raw [sha256.Size]byte) *offer {
	o := s.offered()
	if o == nil || o.standing == "" || len(o.head.Notes) > 0 {
		return nil
	}
	if now := s.standing(ctx); now.Token != o.standing || now.Seen != (pin.Seen{Raw: s.rawSum(raw), Sum: o.sum}) {
		return nil
	}
	return o
}

// saw remembers that a list of tools as it came is kept under a sum.
func (s *server) saw(ctx context.Context, raw [sha256.Size]byte, sum string) {
	r, ok := s.g.cfg.Pins.(Recaller)
	if !ok || raw == [sha256.Size]byte{} || s.g.shelf.dir == "" {
		return
	}
	seen := pin.Seen{Raw: s.rawSum(raw), Sum: sum}
	if now := s.standing(ctx); now.Token == "" || now.Seen == seen {
		return
	}
	if err := r.Saw(ctx, s.pinKey(), seen); err != nil {
		s.g.cfg.Log.Warn("the tools of an MCP server will be compared at each start", "server", s.def.Name, "error", err)
	}
}

// stands notes that a server lists what it offers already. It reports false where it
// does not: something else than the tools changed.
func (s *server) stands(was *offer, info link.Info, got link.Lists) bool {
	s.listing.Lock()
	defer s.listing.Unlock()
	fresh, err := newLists(s.def.Name, info, got, now(), s.g.cfg.Redactor())
	if err != nil {
		return false
	}
	before, err := json.Marshal(was.head)
	if err != nil {
		return false
	}
	after, err := json.Marshal(fresh.head)
	if err != nil || !bytes.Equal(before, after) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != was {
		return false
	}
	next := *was
	next.listed = fresh.listed
	s.current, s.asleep = &next, false
	return true
}

// recheckAfter is how long after its start a server's kept lists are searched for
// secrets that Ken did not know when it kept them.
const recheckAfter = 2 * time.Second

// recheck reads the lists again where they hold a secret.
func (b *backend) recheck(l *link.Link) {
	ctx, cancel := context.WithCancel(b.s.g.ctx)
	defer cancel()
	if !wait(ctx, b.s.g.ctx, recheckAfter) || !b.s.leaks() || b.live() != l {
		return
	}
	ctx, stop := context.WithTimeout(ctx, b.s.def.StartTimeout)
	defer stop()
	got, err := l.Lists(ctx)
	if err == nil {
		err = b.s.take(ctx, l.Info(), got)
	}
	if err != nil && ctx.Err() == nil {
		b.s.g.cfg.Log.Warn("lists of an MCP server cannot be read", "server", b.s.def.Name, "error", err)
	}
}

// leaks reports whether the kept lists hold a secret that Ken knows.
func (s *server) leaks() bool {
	s.mu.Lock()
	l := s.kept
	s.mu.Unlock()
	if l == nil {
		var err error
		if l, err = s.g.shelf.load(s.id); err != nil || l == nil {
			return false // nothing is kept
		}
	}
	redact := s.g.cfg.Redactor()
	for i := range l.tools {
		if clean, err := redactJSON(l.tool(i), redact); err != nil || !bytes.Equal(clean, l.tool(i)) {
			return true
		}
	}
	return false
}
