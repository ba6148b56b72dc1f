package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/run/mcpgateway"
	"ken/internal/tokenizer"
)

// A ServerReview is what a person must look at before the tools of an MCP server
// that are new or changed may be used, or the server itself where a file of
// mcp.import defines it otherwise than before.
type ServerReview struct {
	Server  string        `json:"server"`
	Waiting []pin.Waiting `json:"waiting"`
	Digest  string        `json:"digest"` // of all that waits

	// Findings are what the scan of texts has against tools that wait, by tool.
	// Accepting a tool does not release it from a grave one.
	Findings map[string][]capability.Finding `json:"findings,omitempty"`

	// Unlisted says why nothing is known of the server: it never answered.
	Unlisted string `json:"unlisted,omitempty"`

	key     string
	others  []pin.Waiting // the last of Waiting: prompts, resources and templates
	defined *pin.Waiting  // the definition, which is the first of Waiting then
	file    string        // it is in
}

// A ServerStand is how an MCP server stands, among the extensions.
type ServerStand struct {
	Name     string    `json:"name"`
	Place    string    `json:"place"` // where it is defined
	Key      string    `json:"key"`
	State    string    `json:"state"`          // one of the Server… words
	Why      string    `json:"why,omitempty"`  // where it cannot be used
	Fix      string    `json:"fix,omitempty"`  // what to do then
	First    time.Time `json:"first,omitzero"` // when it was first listed
	Accepted int       `json:"accepted"`
	New      int       `json:"new"`
	Changed  int       `json:"changed"`
	Notes    []string  `json:"notes,omitempty"` // what is left out of its lists, and why
}

// What a server can stand as.
const (
	ServerOn       = "enabled"
	ServerWaits    = "differs" // some of its tools wait for a person
	ServerOff      = "disabled"
	ServerFailed   = "failed"
	ServerUnlisted = "unlisted"
)

// ServerReviews lists the MCP servers there are, with what waits at each.
func (a *App) ServerReviews(ctx context.Context) ([]ServerStand, error) {
	if a.gateway == nil {
		return nil, nil
	}
	list := a.Servers.Definitions()
	if len(list) == 0 {
		return nil, nil
	}
	desk, err := a.serving.pins.Get()
	if err != nil {
		return nil, err
	}
	all, err := desk.List(ctx)
	pins := map[string]pin.Server{}
	for _, p := range all {
		pins[p.Key] = p
	}
	now := map[string]mcpgateway.Status{}
	for _, st := range a.gateway.Status() {
		now[st.Name] = st
	}
	var out []ServerStand
	for _, s := range list {
		key := pin.ServerKey(s.Name, s.Origin.Path)
		p, others := pins[key], pins[pin.OffersKey(key)]
		p.New, p.Changed = p.New+others.New, p.Changed+others.Changed
		stand := ServerStand{Name: s.Name, Place: s.Origin.String(), Key: key, First: p.First, Accepted: p.Accepted, New: p.New, Changed: p.Changed}
		stand.State, stand.Why, stand.Fix = standOf(s, p, now[s.Name])
		for _, p := range now[s.Name].Problems {
			if p.Code == "mcp-list" {
				stand.Notes = append(stand.Notes, p.Message)
			}
		}
		if s.Held != "" {
			stand.Changed++
		}
		out = append(out, stand)
	}
	return out, err
}

func standOf(s mcpgateway.Server, p pin.Server, st mcpgateway.Status) (state, why, fix string) {
	switch {
	case s.Disabled:
		return ServerOff, "", ""
	case s.Held != "":
		return ServerWaits, "its definition waits for a person: " + s.Held, "ken extension review mcp:" + s.Name
	case st.State == mcpgateway.Failed || st.State == mcpgateway.BackingOff:
		return ServerFailed, st.Err, st.Fix
	case p.First.IsZero() && st.Listed.IsZero():
		return ServerUnlisted, cmp.Or(st.Err, "it was never listed"), cmp.Or(st.Fix, "ken doctor starts it once")
	case p.New+p.Changed > 0:
		return ServerWaits, "", ""
	}
	return ServerOn, "", ""
}

// ReviewServer returns what waits at a server.
func (a *App) ReviewServer(ctx context.Context, name string) (ServerReview, error) {
	r := ServerReview{Server: name}
	s, err := a.Servers.Find("review", name)
	if err != nil {
		return r, err
	}
	desk, err := a.serving.pins.Get()
	if err != nil {
		return r, err
	}
	r.key = pin.ServerKey(name, s.Origin.Path)
	if r.Waiting, err = desk.Pending(ctx, r.key); err != nil {
		return r, err
	}
	if r.others, err = desk.Pending(ctx, pin.OffersKey(r.key)); err != nil {
		return r, err
	}
	r.Waiting = append(r.Waiting, r.others...)
	if s.Held != "" {
		if r.defined, err = a.definitions.Waiting(ctx, s.Origin.Path, s.Name); err != nil {
			return r, err
		}
	}
	if r.defined != nil {
		r.file, r.Waiting = s.Origin.Path, append([]pin.Waiting{*r.defined}, r.Waiting...)
	}
	h := sha256.New()
	for _, w := range r.Waiting {
		fmt.Fprintf(h, "%d:%s%d:%s", len(w.Tool), w.Tool, len(w.Hash), w.Hash)
		if found := a.findings(source.MCPID(name, w.Tool)); len(found) > 0 {
			if r.Findings == nil {
				r.Findings = map[string][]capability.Finding{}
			}
			r.Findings[w.Tool] = found
		}
	}
	r.Digest = hex.EncodeToString(h.Sum(nil)[:8])
	r.Unlisted, err = a.unlisted(ctx, s, r.key)
	return r, err
}

// unlisted says why nothing is known of a server; it is empty where something
// is.
func (a *App) unlisted(ctx context.Context, s mcpgateway.Server, key string) (string, error) {
	if s.Disabled {
		return "it is switched off (" + s.Origin.String() + ")", nil
	}
	for _, st := range a.gateway.Status() {
		if st.Name != s.Name || !st.Listed.IsZero() {
			continue
		}
		all, err := a.ServerReviews(ctx)
		i := slices.IndexFunc(all, func(x ServerStand) bool { return x.Key == key })
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

// findings are what the scan of texts has against a capability; what the pins
// say is not among them.
func (a *App) findings(id capability.ID) []capability.Finding {
	e, ok := a.catalog.Snapshot().Get(id)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.Findings), func(f capability.Finding) bool { return f.Rule == "mcp-new" || f.Rule == "mcp-changed" })
}

// Acceptance is what became of tools that a person accepted.
type Acceptance struct {
	Server   string   `json:"server"`
	Accepted int      `json:"accepted"`
	Usable   []string `json:"usable"` // ids
	Others   int      `json:"others"` // prompts, resources and templates that were accepted

	// Held are those that stay in quarantine all the same, and why.
	Held map[string][]string `json:"held"`
}

// AcceptTools lets be used what was shown.
func (a *App) AcceptTools(ctx context.Context, by capability.Principal, r ServerReview) (Acceptance, error) {
	out := Acceptance{Server: r.Server, Accepted: len(r.Waiting), Others: len(r.others), Usable: []string{}, Held: map[string][]string{}}
	if len(r.Waiting) == 0 {
		return out, nil
	}
	desk, err := a.serving.pins.Get()
	if err != nil {
		return out, err
	}
	tools := r.Waiting[:len(r.Waiting)-len(r.others)]
	if r.defined != nil {
		tools = tools[1:]
	}
	if err := a.acceptTools(ctx, desk, by, r, tools); err != nil {
		return out, err
	}
	if r.defined != nil {
		if err := a.acceptDefinition(ctx, by, r); err != nil {
			return out, err
		}
	}
	if err := a.Reload(ctx); err != nil {
		return out, err
	}
	for _, id := range a.accepted(r, tools) {
		e, ok := a.catalog.Snapshot().Get(id)
		switch {
		case !ok: // it went meanwhile, or is left out by include and exclude
		case e.State == catalog.Active:
			out.Usable = append(out.Usable, string(id))
		default:
			out.Held[string(id)] = e.Reasons
		}
	}
	return out, nil
}

func (a *App) acceptTools(ctx context.Context, desk *pin.Desk, by capability.Principal, r ServerReview, tools []pin.Waiting) error {
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
	return a.gateway.Review(ctx, r.Server)
}

// acceptDefinition accepts a definition that a person has seen, and lists the
// server.
func (a *App) acceptDefinition(ctx context.Context, by capability.Principal, r ServerReview) error {
	if err := a.definitions.Accept(ctx, r.file, r.Server, r.defined.Hash, by); err != nil {
		return err
	}
	a.Servers.Relist(ctx, r.Server)
	return nil
}

// accepted returns the tools that an acceptance was about: with a definition all
// that the server has.
func (a *App) accepted(r ServerReview, tools []pin.Waiting) []capability.ID {
	var out []capability.ID
	if r.defined == nil {
		for _, w := range tools {
			out = append(out, source.MCPID(r.Server, w.Tool))
		}
		return out
	}
	for e := range a.Oversee().All() {
		if e.Origin.Format == source.FormatMCP && e.Category == r.Server && e.Run != nil && e.Run.Runner == "mcp.call" {
			out = append(out, e.ID)
		}
	}
	return out
}

// A ServerCost is what the tools of a server are to a client that shows them
// all to its model.
type ServerCost struct {
	Server string
	Tools  int
	Tokens int
}

// ServerCosts counts the definitions of the tools of every server.
func (a *App) ServerCosts(ctx context.Context) []ServerCost {
	by := map[string]*ServerCost{}
	for e := range a.Oversee().All() {
		if e.Origin.Format != source.FormatMCP || e.Run == nil || e.Run.Runner != "mcp.call" {
			continue
		}
		c := by[e.Category]
		if c == nil {
			c = &ServerCost{Server: e.Category}
			by[e.Category] = c
		}
		d, err := a.catalog.Inspect(ctx, e)
		if err != nil {
			continue // it changes this moment
		}
		// Texts and schemas as they are, without the escapes that JSON needs.
		head, _ := json.Marshal(map[string]string{"name": e.Name, "description": e.Description}) // texts cannot fail
		c.Tools++
		c.Tokens += tokenizer.Count(string(head)) + tokenizer.Count(string(d.Schema))
	}
	var out []ServerCost
	for _, c := range by {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(x, y ServerCost) int { return cmp.Or(y.Tokens-x.Tokens, strings.Compare(x.Server, y.Server)) })
	return out
}
