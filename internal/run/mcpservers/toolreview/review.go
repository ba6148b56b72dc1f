// Package toolreview shows the tools and definitions of MCP servers that are new
// or changed, and accepts them.
package toolreview

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/know/catalog"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/definitions"
)

// A Config says what [Reviews] works with.
type Config struct {
	Servers     Servers
	Definitions *definitions.Pins
	Pins        func() (*pin.Desk, error) // of tools and other offers; opened at the first use
	Policy      func() pin.Policy         // what happens to tools that are not accepted yet
	Catalog     *catalog.Catalog
	Log         *slog.Logger
}

// Servers are the MCP servers to review. Package mcpservers implements it; an
// import of that package would lengthen the chain of imports.
type Servers interface {
	Gateway() *mcpgateway.Gateway // nil: there are no servers
	Shared() bool                 // another owner keeps the gateway up to date
	Definitions() []mcpgateway.Server
	Find(op, name string) (mcpgateway.Server, error)
	PinKey(name string) string
	Relist(ctx context.Context, name string)
}

// Reviews are the reviews of MCP servers. Its methods are safe for concurrent
// use.
type Reviews struct{ cfg Config }

// New returns the reviews of servers. It opens nothing yet.
func New(cfg Config) *Reviews { return &Reviews{cfg} }

// A Review is what a person must look at before new or changed tools of an MCP
// server may be used, or the server itself where its definition in a file of
// mcp.import has changed.
type Review struct {
	Server  string        `json:"server"`
	Waiting []pin.Waiting `json:"waiting"`
	Digest  string        `json:"digest"` // of all that waits

	// Findings are those of the text scan in tools that wait, by tool. A tool with
	// a grave finding stays in quarantine even if it is accepted.
	Findings map[string][]capability.Finding `json:"findings,omitempty"`

	// Unlisted says why nothing is known about the server: it never answered.
	Unlisted string `json:"unlisted,omitempty"`

	key     string
	others  []pin.Waiting // the last of Waiting: prompts, resources and templates
	defined *pin.Waiting  // the definition, which is the first of Waiting then
	file    string        // that contains the definition
}

// A Server is the state of an MCP server in the list of extensions.
type Server struct {
	Name     string    `json:"name"`
	Place    string    `json:"place"` // where it is defined
	Key      string    `json:"key"`
	State    string    `json:"state"`          // Enabled, Waiting, Disabled, Failed or Unlisted
	Why      string    `json:"why,omitempty"`  // where it cannot be used
	Fix      string    `json:"fix,omitempty"`  // what to do then
	First    time.Time `json:"first,omitzero"` // when it was first listed
	Accepted int       `json:"accepted"`       // tools, without Ken's own for resources and prompts
	New      int       `json:"new"`
	Changed  int       `json:"changed"`
	Notes    []string  `json:"notes,omitempty"` // what is left out of its lists, and why
}

// The states of a server.
const (
	Enabled  = "enabled"
	Waiting  = "differs" // some of its tools, or its definition, wait for review
	Disabled = "disabled"
	Failed   = "failed"
	Unlisted = "unlisted"
)

// List returns the MCP servers, with the number of offers that wait at each.
func (v *Reviews) List(ctx context.Context) ([]Server, error) {
	if v.gateway() == nil {
		return nil, nil
	}
	list := v.cfg.Servers.Definitions()
	if len(list) == 0 {
		return nil, nil
	}
	desk, err := v.cfg.Pins()
	if err != nil {
		return nil, err
	}
	all, err := desk.List(ctx)
	pins := map[string]pin.Server{}
	for _, p := range all {
		pins[p.Key] = p
	}
	now := map[string]mcpgateway.Status{}
	for _, st := range v.gateway().Status() {
		now[st.Name] = st
	}
	var out []Server
	for _, s := range list {
		key := pin.ServerKey(s.Name, s.Origin.Path)
		p, others := pins[key], pins[pin.OffersKey(key)]
		if p.New, p.Changed = p.New+others.New, p.Changed+others.Changed; p.New+p.Changed > 0 {
			tools, rest, failed := v.waiting(ctx, desk, s.Name, key)
			err = errors.Join(err, failed)
			p.New, p.Changed = 0, 0
			for _, w := range slices.Concat(tools, rest) {
				if w.State == pin.Added {
					p.New++
				} else {
					p.Changed++
				}
			}
		}
		one := Server{Name: s.Name, Place: s.Origin.String(), Key: key, First: p.First, Accepted: max(0, p.Accepted-now[s.Name].Own), New: p.New, Changed: p.Changed}
		one.State, one.Why, one.Fix = stateOf(s, p, now[s.Name])
		for _, p := range now[s.Name].Problems {
			if p.Code == "mcp-list" {
				one.Notes = append(one.Notes, p.Message)
			}
		}
		if s.Held != "" {
			one.Changed++
		}
		out = append(out, one)
	}
	return out, err
}

func stateOf(s mcpgateway.Server, p pin.Server, st mcpgateway.Status) (state, why, fix string) {
	switch {
	case s.Disabled:
		return Disabled, "", ""
	case s.Held != "":
		return Waiting, "its definition waits for a person: " + s.Held, "ken extension review mcp:" + s.Name
	case st.State == mcpgateway.Failed || st.State == mcpgateway.BackingOff:
		return Failed, st.Err, st.Fix
	case p.First.IsZero() && st.Listed.IsZero():
		return Unlisted, cmp.Or(st.Err, "it was never listed"), cmp.Or(st.Fix, "ken doctor starts it once")
	case p.New+p.Changed > 0:
		return Waiting, "", ""
	}
	return Enabled, "", ""
}

// Review returns what waits at a server.
func (v *Reviews) Review(ctx context.Context, name string) (Review, error) {
	r := Review{Server: name}
	s, err := v.cfg.Servers.Find("review", name)
	if err != nil {
		return r, err
	}
	desk, err := v.cfg.Pins()
	if err != nil {
		return r, err
	}
	r.key = pin.ServerKey(name, s.Origin.Path)
	if r.Waiting, r.others, err = v.waiting(ctx, desk, name, r.key); err != nil {
		return r, err
	}
	r.Waiting = append(r.Waiting, r.others...)
	if s.Held != "" {
		if r.defined, err = v.cfg.Definitions.Waiting(ctx, s.Origin.Path, s.Name); err != nil {
			return r, err
		}
	}
	if r.defined != nil {
		r.file, r.Waiting = s.Origin.Path, append([]pin.Waiting{*r.defined}, r.Waiting...)
	}
	h := sha256.New()
	for _, w := range r.Waiting {
		fmt.Fprintf(h, "%d:%s%d:%s", len(w.Tool), w.Tool, len(w.Hash), w.Hash)
		if found := v.findings(mcptools.ID(name, w.Tool)); len(found) > 0 {
			if r.Findings == nil {
				r.Findings = map[string][]capability.Finding{}
			}
			r.Findings[w.Tool] = found
		}
	}
	r.Digest = hex.EncodeToString(h.Sum(nil)[:8])
	r.Unlisted, err = v.unlisted(ctx, s, r.key)
	return r, err
}

// waiting returns what waits at a server: its tools, and its prompts, resources and
// templates. What the server no longer lists is left out. Its pin stays, and it
// waits again when it comes back.
func (v *Reviews) waiting(ctx context.Context, desk *pin.Desk, name, key string) (tools, others []pin.Waiting, err error) {
	if tools, err = desk.Pending(ctx, key); err != nil {
		return nil, nil, err
	}
	if others, err = desk.Pending(ctx, pin.OffersKey(key)); err != nil {
		return nil, nil, err
	}
	for _, st := range v.gateway().Status() {
		if st.Name != name || st.Listed.IsZero() {
			continue
		}
		tools = slices.DeleteFunc(tools, func(w pin.Waiting) bool { return !v.gateway().Lists(name, w.Tool) })
		if st.Barred == 0 {
			others = nil
		}
	}
	return tools, others, nil
}

// unlisted says why nothing is known about a server, or "" if something is.
func (v *Reviews) unlisted(ctx context.Context, s mcpgateway.Server, key string) (string, error) {
	if s.Disabled {
		return "it is switched off (" + s.Origin.String() + ")", nil
	}
	for _, st := range v.gateway().Status() {
		if st.Name != s.Name || !st.Listed.IsZero() {
			continue
		}
		all, err := v.List(ctx)
		i := slices.IndexFunc(all, func(x Server) bool { return x.Key == key })
		if err != nil || i >= 0 && !all[i].First.IsZero() {
			return "", err
		}
		why := cmp.Or(st.Err, "it has not been started yet")
		if st.Fix != "" {
			why += "; " + st.Fix
		}
		return why, nil
	}
	return "", nil
}

// findings returns the findings of the text scan in a capability, without those
// of the pins.
func (v *Reviews) findings(id capability.ID) []capability.Finding {
	e, ok := v.cfg.Catalog.Snapshot().Get(id)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Findings), mcpgateway.IsPinFinding)
}

// Acceptance is the result of accepting tools.
type Acceptance struct {
	Server   string   `json:"server"`
	Accepted int      `json:"accepted"`
	Usable   []string `json:"usable"` // ids
	Others   int      `json:"others"` // prompts, resources and templates that were accepted

	// Held has the tools that stay in quarantine in spite of that, and why.
	Held map[string][]string `json:"held"`
}

// Accept accepts what a person was shown.
func (v *Reviews) Accept(ctx context.Context, by capability.Principal, r Review) (Acceptance, error) {
	out := Acceptance{Server: r.Server, Accepted: len(r.Waiting), Others: len(r.others), Usable: []string{}, Held: map[string][]string{}}
	if len(r.Waiting) == 0 {
		return out, nil
	}
	desk, err := v.cfg.Pins()
	if err != nil {
		return out, err
	}
	tools := r.Waiting[:len(r.Waiting)-len(r.others)]
	if r.defined != nil {
		tools = tools[1:]
	}
	if err := v.acceptTools(ctx, desk, by, r, tools); err != nil {
		return out, err
	}
	if r.defined != nil {
		if err := v.acceptDefinition(ctx, by, r); err != nil {
			return out, err
		}
	}
	if err := v.cfg.Catalog.Load(ctx); err != nil {
		return out, err
	}
	for _, id := range v.accepted(r, tools) {
		e, ok := v.cfg.Catalog.Snapshot().Get(id)
		switch {
		case !ok: // it went meanwhile, or is left out by include and exclude
		case e.State == catalog.Active:
			out.Usable = append(out.Usable, string(id))
		default:
			out.Held[string(id)] = e.Reasons.Sentences()
		}
	}
	return out, nil
}

func (v *Reviews) acceptTools(ctx context.Context, desk *pin.Desk, by capability.Principal, r Review, tools []pin.Waiting) error {
	for _, one := range []struct {
		key  string
		list []pin.Waiting
	}{{r.key, tools}, {pin.OffersKey(r.key), r.others}} {
		if len(one.list) == 0 {
			continue
		}
		shown := map[string]string{}
		for _, w := range one.list {
			shown[w.Tool] = w.Hash
		}
		if err := desk.Accept(ctx, one.key, shown, by); err != nil {
			return err
		}
	}
	if len(tools)+len(r.others) == 0 || r.defined != nil {
		return nil // the offers of the other definition are checked when it is listed
	}
	return v.gateway().Review(ctx, r.Server)
}

// acceptDefinition accepts a definition that a person has seen, and lists the
// server.
func (v *Reviews) acceptDefinition(ctx context.Context, by capability.Principal, r Review) error {
	if err := v.cfg.Definitions.Accept(ctx, r.file, r.Server, r.defined.Hash, by); err != nil {
		return err
	}
	v.cfg.Servers.Relist(ctx, r.Server)
	return nil
}

// accepted returns the tools that were accepted: all tools of the server if its
// definition was.
func (v *Reviews) accepted(r Review, tools []pin.Waiting) []capability.ID {
	var out []capability.ID
	if r.defined == nil {
		for _, w := range tools {
			out = append(out, mcptools.ID(r.Server, w.Tool))
		}
		return out
	}
	for e := range v.cfg.Catalog.Snapshot().All() {
		if isTool(e) && e.Category == r.Server {
			out = append(out, e.ID)
		}
	}
	return out
}

// isTool reports whether an entry of the catalog is a tool of an MCP server,
// whose name is the entry's category.
func isTool(e *catalog.Entry) bool {
	return e.Origin.Format == mcptools.Format && e.Run != nil && e.Run.Runner == "mcp.call"
}

func (v *Reviews) gateway() *mcpgateway.Gateway { return v.cfg.Servers.Gateway() }
