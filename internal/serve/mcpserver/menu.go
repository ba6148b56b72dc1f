package mcpserver

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"slices"
	"sort"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/tokenizer"
)

// A menu is the list of tools of one surface, and what their names mean.
type menu struct {
	*list
	print   uint64 // of what it was made from
	targets map[string]capability.ID
	promise map[string]bool // tools that are listed with the schema of their results
	headers []*mcp.Tool     // tools whose arguments are in headers of a request too
}

// menuFor returns the menu of a surface as the view has it. Rebuilding it reads
// only what has changed.
func (a *audience) menuFor(ctx context.Context, v door.View, surface string) (*menu, error) {
	entries, print := a.offered(v, surface)
	if m := a.known(surface); m != nil && m.print == print {
		return m, nil
	}
	// Reading two thousand schemas may take a while, in which calls go on.
	a.making.Lock()
	defer a.making.Unlock()
	if m := a.known(surface); m != nil && m.print == print {
		return m, nil
	}
	m, err := a.makeMenu(ctx, v, surface, entries)
	if err != nil {
		return nil, err
	}
	m.print = print
	a.mu.Lock()
	defer a.mu.Unlock()
	a.menus[surface] = m
	return m, nil
}

// known returns the last menu of a surface, which may be out of date: what a name
// means is decided by the door again.
func (a *audience) known(surface string) *menu {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.menus[surface]
}

// offered returns the capabilities that a surface shows natively, and a print
// that is the same as long as they are.
func (a *audience) offered(v door.View, surface string) ([]*door.Entry, uint64) {
	var out []*door.Entry
	h := fnv.New64a()
	var flag [8]byte
	for _, name := range a.s.cfg.Intents() {
		h.Write([]byte(name))
		h.Write(flag[:]) // no name has a zero in it
	}
	pages := false
	note := func(e *door.Entry) {
		if !callable(e) || reserved(e.Name) && e.Trust == capability.TrustBuiltin { // every menu has these anyway
			return
		}
		out = append(out, e)
		h.Write([]byte(e.ID))
		h.Write([]byte(e.Hash))
		binary.LittleEndian.PutUint64(flag[:], uint64(len(e.Hash)))
		h.Write(flag[:])
		h.Write([]byte(a.s.exposed(e)))
		if !pages && a.s.page(e).Address != "" { // whose address depends on what else there is
			pages = true
			h.Write(binary.LittleEndian.AppendUint64(nil, a.offerings(a.view()).print))
		}
	}
	if surfaceOf(surface) == direct {
		for _, e := range named(slices.Collect(v.All())) {
			note(e)
		}
		return out, h.Sum64()
	}
	var pinned []*door.Entry
	if strings.HasSuffix(surface, withApps) { // clients take the pages of tools from the list
		for e := range v.All() {
			if p := a.s.page(e); p.Address != "" || p.Only {
				pinned = append(pinned, e)
			}
		}
	}
	for _, id := range a.s.cfg.Pinned {
		if e, err := v.Lookup(id); err == nil && !slices.Contains(pinned, e) {
			pinned = append(pinned, e)
		}
	}
	for _, e := range named(pinned) {
		note(e)
	}
	return out, h.Sum64()
}

// named returns entries in the order in which they get their names. Ken's own come
// first, so that no server's tool takes their names, and a project's last, so that
// none takes the name of anything that was there without it.
func named(list []*door.Entry) []*door.Entry {
	slices.SortStableFunc(list, func(a, b *door.Entry) int { return late(a) - late(b) })
	return list
}

func late(e *door.Entry) int {
	switch e.Trust {
	case capability.TrustBuiltin:
		return 0
	case capability.TrustWorkspace:
		return 2
	}
	return 1
}

// callable reports whether something can be listed as a tool. What reads
// resources and prompts is offered as those.
func callable(e *door.Entry) bool {
	if e.State != "active" || !e.Available || e.Run == nil || e.Run.Runner == "mcp.resource" || e.Run.Runner == "mcp.prompt" {
		return false
	}
	switch e.Kind {
	case capability.KindSkill, capability.KindCard, capability.KindCommand, capability.KindExtension, capability.KindChannel:
		return false
	}
	return true
}

func (s *Server) exposed(e *door.Entry) string {
	if s.cfg.Exposed != nil {
		if name := s.cfg.Exposed(e); name != "" {
			return name
		}
	}
	return e.Name
}

func (a *audience) makeMenu(ctx context.Context, v door.View, surface string, entries []*door.Entry) (*menu, error) {
	metaNames, metaItems := a.s.metaTools(surface, a.has(v, toolRead))
	shown := a.offerings(a.view())
	m := &menu{targets: make(map[string]capability.ID, len(entries)), promise: map[string]bool{}}
	byName := make(map[string]json.RawMessage, len(entries)+len(metaNames))
	made := make(map[capability.ID]native, len(entries))
	for _, e := range entries {
		name := unique(a.s.exposed(e), e, m.targets)
		n, ok := a.natives[e.ID]
		if !ok || n.hash != e.Hash || n.name != name || n.pages != nil && n.pages != shown {
			var err error
			if n, err = a.native(ctx, v, e, name, shown); err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				// It went between the list and the reading, or cannot be read:
				// it is not offered, and the rest is.
				a.s.log.Warn("not on the menu", "capability", e.ID, "why", err)
				continue
			}
		}
		made[e.ID] = n
		m.targets[name], byName[name] = e.ID, n.item
		if n.output {
			m.promise[name] = true
		}
		if n.header != nil {
			m.headers = append(m.headers, n.header)
		}
	}
	if surfaceOf(surface) == direct {
		a.natives = made
	}
	names := make([]string, 0, len(byName)+len(metaNames))
	for name := range byName {
		names = append(names, name)
	}
	for i, name := range metaNames {
		names = append(names, name)
		byName[name] = metaItems[i]
	}
	sort.Strings(names)
	items := make([]json.RawMessage, len(names))
	for i, name := range names {
		items[i] = byName[name]
	}
	m.list = newList("tools", names, items)
	return m, nil
}

// A Menu is what a client's model has before its eyes in every turn.
type Menu struct {
	Surface string
	Tools   int
	Tokens  int // of what is always loaded, as the client's model counts them or nearly

	// Deferred is how many of Tools the client keeps back until its model
	// searches for them.
	Deferred int
}

// Menu counts what a principal's client is shown, by the name that the client
// gives and by the surface that it asks for.
func (s *Server) Menu(ctx context.Context, who capability.Principal, client, asked string) (Menu, error) {
	a := s.audience(who)
	out := Menu{Surface: s.cfg.surface(who.Agent, client, asked)}
	m, err := a.menuFor(ctx, a.view(), out.Surface)
	if err != nil {
		return out, err
	}
	out.Tools = len(m.items)
	for i, item := range m.items {
		if out.Surface == direct && !reserved(m.names[i]) {
			out.Deferred++
			continue
		}
		out.Tokens += tokenizer.Count(string(forModel(item)))
	}
	return out, nil
}

// forModel returns a tool without what clients do not show to models: its title,
// its output schema and its hints.
func forModel(item json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil {
		return item
	}
	for _, key := range []string{"title", "outputSchema", "annotations"} {
		delete(fields, key)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return item
	}
	return out
}
