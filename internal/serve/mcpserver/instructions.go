package mcpserver

import (
	"fmt"
	"slices"
	"strings"

	"ken/internal/door"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

// ownInstructions are what a client's model reads before all else.
const ownInstructions = "Ken: search discover_capabilities before you say that something cannot be done."

// mostMissing is how many servers the instructions name.
const mostMissing = 8

// advice returns the instructions of Ken, what servers lack at this moment, and
// the servers' own instructions.
func (ep *endpoint) advice() string {
	var out strings.Builder
	out.WriteString(ownInstructions)
	ep.s.writeMissing(&out)
	if ep.s.cfg.Backends != nil && ep.s.cfg.Instructions > 0 {
		offers, _ := ep.s.cfg.Backends.Offers(ep.who)
		if slices.ContainsFunc(offers, func(o Offer) bool { return o.Instructions != "" }) {
			ep.s.writeInstructions(&out, offers, serversIn(ep.view()))
		}
	}
	return out.String()
}

// writeMissing names the servers that cannot be used for want of something.
func (s *Server) writeMissing(out *strings.Builder) {
	if s.cfg.Missing == nil {
		return
	}
	missing := s.cfg.Missing()
	if len(missing) == 0 {
		return
	}
	out.WriteString(" These servers cannot be used until the user has done what is said; tell the user:")
	for i, line := range missing {
		if i == mostMissing {
			fmt.Fprintf(out, "\n- and %d more: ken extension list", len(missing)-i)
			return
		}
		out.WriteString("\n- " + untrusted.Line(line, 400))
	}
}

// writeInstructions passes on what the servers say of themselves, those of them
// that the client can use, until the tokens are spent.
func (s *Server) writeInstructions(out *strings.Builder, offers []Offer, visible map[string]bool) {
	left, skipped := s.cfg.Instructions, 0
	for i := range offers {
		o := &offers[i]
		text := strings.TrimSpace(o.Instructions)
		if text == "" || !visible[o.Server] {
			continue
		}
		text, _ = untrusted.Tokens(text)
		short := tokenizer.Cut(text, left)
		if strings.TrimSpace(short) == "" {
			skipped++
			continue
		}
		left -= tokenizer.Count(short)
		if len(short) < len(text) {
			short += " … (cut: mcp.instructions)"
		}
		out.WriteString("\n\n" + untrusted.Block(short, untrusted.BlockConfig{Key: s.key, Origin: "instructions of the server " + o.Server, Max: len(short)}))
	}
	if skipped > 0 {
		fmt.Fprintf(out, "\n\nInstructions of other servers are left out, by the limit mcp.instructions: %d.", skipped)
	}
}

// serversIn returns the names of the servers with something that can be used in a
// view.
func serversIn(v door.View) map[string]bool {
	out := map[string]bool{}
	for e := range v.All() {
		if rest, ok := strings.CutPrefix(string(e.ID), "mcp:"); ok && e.State == "active" {
			server, _, _ := strings.Cut(rest, "/")
			out[server] = true
		}
	}
	return out
}
