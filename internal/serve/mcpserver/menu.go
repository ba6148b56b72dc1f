package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"slices"
	"sort"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/schema"
	"ken/internal/tokenizer"
)

// pageSize is how many tools, prompts or resources one page of a list holds.
const pageSize = 1000

// A list is what a client is shown of one kind, in the order of the names. It
// does not change.
type list struct {
	field string // "tools", "prompts", …
	hash  string
	names []string
	items []json.RawMessage
	first [2][]byte // the first page, for clients of before and from 2026-07-28
}

func newList(field string, names []string, items []json.RawMessage) *list {
	l := &list{field: field, names: names, items: items}
	h := sha256.New()
	for _, item := range items {
		h.Write(item)
	}
	l.hash = hex.EncodeToString(h.Sum(nil)[:12])
	for i := range l.first {
		l.first[i] = l.page(0, i == 1)
	}
	return l
}

func (l *list) page(from int, modern bool) []byte {
	to := min(from+pageSize, len(l.items))
	b := completeList(modern)
	if to < len(l.items) {
		b = append(b, `"nextCursor":`...)
		b = appendText(b, base64.RawURLEncoding.EncodeToString([]byte(l.names[to-1])))
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, l.field...)
	b = append(b, `":[`...)
	for i, item := range l.items[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, `]}`...)
}

// answer gives the page that a cursor asks for. A cursor names the last item of
// the page before, so it means something in a list that has changed since.
func (l *list) answer(cursor string, modern bool) (*answer, error) {
	if cursor == "" {
		i := 0
		if modern {
			i = 1
		}
		return &answer{body: l.first[i]}, nil
	}
	last, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, fault(jsonrpc.CodeInvalidParams, "there is no such cursor; list from the beginning", nil)
	}
	from, found := slices.BinarySearch(l.names, string(last))
	if found {
		from++
	}
	return &answer{body: l.page(from, modern)}, nil
}

// A menu is the list of tools of one surface, and what their names mean.
type menu struct {
	*list
	print   uint64 // of what it was made from
	targets map[string]capability.ID
	promise map[string]bool // tools that are listed with the schema of their results
	headers []*mcp.Tool     // tools whose arguments are in headers of a request too
}

// The names of Ken's own tools.
const (
	toolDiscover = "discover_capabilities"
	toolList     = "list_capabilities"
	toolDescribe = "describe_capability"
	toolInvoke   = "invoke_capability"
	toolIntent   = "select_active_intent"
	toolRead     = "read_result"
)

func reserved(name string) bool {
	switch name {
	case toolDiscover, toolList, toolDescribe, toolInvoke, toolIntent, toolRead:
		return true
	}
	return false
}

// shown marks tools that a client must not hide behind a search of its own.
// As of 2026-11 Claude Code is the one client with a mark for it.
const shown = `"_meta":{"anthropic/alwaysLoad":true}`

// metaTools gives Ken's own tools. They are as short as they can be: every
// model reads them in every turn.
func (s *Server) metaTools(surface string, results bool) (names []string, items []json.RawMessage) {
	add := func(name, description, schema string) {
		b := append([]byte(`{"name":`), appendText(nil, name)...)
		b = append(b, `,"description":`...)
		b = appendText(b, description)
		b = append(b, `,"inputSchema":`...)
		b = append(b, schema...)
		b = append(b, ',')
		b = append(b, shown...)
		names, items = append(names, name), append(items, append(b, '}'))
	}
	for _, t := range s.cfg.Door.Tools() {
		if t.Name == toolDiscover || surface == bridge {
			add(t.Name, t.Description, string(t.Schema))
		}
	}
	if surface == bridge {
		add(toolInvoke, "Call a capability by its id",
			`{"type":"object","properties":{"capability":{"type":"string"},"action":{"type":"string"},"arguments":{"type":"object"}},"required":["capability"]}`)
	}
	if intents := s.cfg.Intents(); len(intents) > 0 {
		var b []byte
		for i, name := range intents {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, name)
		}
		add(toolIntent, "Say what you are about to do",
			`{"type":"object","properties":{"intent":{"enum":[`+string(b)+`]}},"required":["intent"]}`)
	}
	if results {
		add(toolRead, "Read on in a long result",
			`{"type":"object","properties":{"handle":{"type":"string"},"op":{"enum":["head","tail","lines","search"]},"from":{"type":"integer"},"to":{"type":"integer"},"pattern":{"type":"string"}}}`)
	}
	return names, items
}

// menuFor gives the menu of a surface as the view has it. Making it anew reads
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

// known gives the last menu of a surface, which may be out of date: what a name
// means is decided by the door again.
func (a *audience) known(surface string) *menu {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.menus[surface]
}

// offered gives the capabilities that a surface shows natively, and a print
// that is the same as long as they are.
func (a *audience) offered(v door.View, surface string) ([]*door.Entry, uint64) {
	var out []*door.Entry
	h := fnv.New64a()
	var flag [8]byte
	for _, name := range a.s.cfg.Intents() {
		h.Write([]byte(name))
		h.Write(flag[:]) // no name has a zero in it
	}
	note := func(e *door.Entry) {
		if !callable(e) {
			return
		}
		out = append(out, e)
		h.Write([]byte(e.ID))
		h.Write([]byte(e.Hash))
		binary.LittleEndian.PutUint64(flag[:], uint64(len(e.Hash)))
		h.Write(flag[:])
		h.Write([]byte(a.s.exposed(e)))
	}
	if surface == direct {
		for e := range v.All() {
			note(e)
		}
		return out, h.Sum64()
	}
	for _, id := range a.s.cfg.Pinned {
		if e, err := v.Lookup(id); err == nil && !slices.Contains(out, e) {
			note(e)
		}
	}
	return out, h.Sum64()
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
	if name := e.Meta["mcp.exposed"]; name != "" {
		return name
	}
	return e.Name
}

func (a *audience) makeMenu(ctx context.Context, v door.View, surface string, entries []*door.Entry) (*menu, error) {
	metaNames, metaItems := a.s.metaTools(surface, a.has(v, toolRead))
	m := &menu{targets: make(map[string]capability.ID, len(entries)), promise: map[string]bool{}}
	byName := make(map[string]json.RawMessage, len(entries)+len(metaNames))
	made := make(map[capability.ID]native, len(entries))
	for _, e := range entries {
		name := unique(a.s.exposed(e), e, m.targets)
		n, ok := a.natives[e.ID]
		if !ok || n.hash != e.Hash || n.name != name {
			var err error
			if n, err = a.native(ctx, v, e, name); err != nil {
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
	if surface == direct {
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

// A native is a tool as it is listed.
type native struct {
	hash, name string
	item       json.RawMessage
	output     bool      // it says what its results are like
	header     *mcp.Tool // set where arguments are in headers too
}

func (a *audience) native(ctx context.Context, v door.View, e *door.Entry, name string) (native, error) {
	d, err := a.s.cfg.Door.Describe(ctx, v, string(e.ID))
	if err != nil {
		return native{}, err
	}
	input := d.Detail.Schema
	if !isObject(input) {
		input = json.RawMessage(`{"type":"object"}`)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, schema.WithoutOwn(input)); err != nil {
		return native{}, err
	}
	n := native{hash: e.Hash, name: name}
	b := append([]byte(`{"name":`), appendText(nil, name)...)
	if e.DisplayName != "" && e.DisplayName != name {
		b = append(b, `,"title":`...)
		b = appendText(b, e.DisplayName)
	}
	if e.Description != "" {
		b = append(b, `,"description":`...)
		b = appendText(b, e.Description)
	}
	b = append(b, `,"inputSchema":`...)
	b = append(b, compact.Bytes()...)
	if output := outputSchema(d.Detail.Output); output != nil {
		n.output = true
		b = append(b, `,"outputSchema":`...)
		b = append(b, output...)
	}
	b = appendHints(b, e.Effects)
	n.item = append(b, '}')
	if bytes.Contains(input, []byte(`"x-mcp-header"`)) {
		n.header = &mcp.Tool{Name: name, InputSchema: json.RawMessage(bytes.Clone(compact.Bytes()))}
	}
	return n, nil
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// appendHints passes on what the source says of a tool's effects.
func appendHints(b []byte, e capability.Effects) []byte {
	before := len(b)
	for _, h := range [...]struct {
		name string
		hint capability.Hint
	}{{"readOnlyHint", e.ReadOnly}, {"destructiveHint", e.Destructive}, {"idempotentHint", e.Idempotent}, {"openWorldHint", e.OpenWorld}} {
		if h.hint == capability.Unsaid {
			continue
		}
		if len(b) == before {
			b = append(b, `,"annotations":{`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, h.name...)
		if h.hint == capability.Yes {
			b = append(b, `":true`...)
		} else {
			b = append(b, `":false`...)
		}
	}
	if len(b) > before {
		b = append(b, '}')
	}
	return b
}

// maxName is how long a name may be for all clients.
const maxName = 64

// unique makes a name fit for clients, and one that neither Ken nor an earlier
// tool has. The same capability among the same ones always gets the same.
func unique[T any](name string, e *door.Entry, taken map[string]T) string {
	fit := fitting(name)
	if _, ok := taken[fit]; !ok && !reserved(fit) && fit == name {
		return fit
	}
	sum := sha256.Sum256([]byte(e.ID))
	suffix := "_" + hex.EncodeToString(sum[:4])
	if fit == name && e.Category != "" {
		long := fitting(e.Category + "__" + name)
		if _, ok := taken[long]; !ok && long == e.Category+"__"+name {
			return long
		}
	}
	return fit[:min(len(fit), maxName-len(suffix))] + suffix
}

// fitting replaces what clients refuse in a name.
func fitting(name string) string {
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return fit[:min(len(fit), maxName)]
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
// gives.
func (s *Server) Menu(ctx context.Context, who capability.Principal, client string) (Menu, error) {
	a := s.audience(who)
	out := Menu{Surface: surfaceFor(s.cfg.Surface, client)}
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
		out.Tokens += tokenizer.Count(string(item))
	}
	return out, nil
}
