package link

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ken/capability"
	"ken/internal/know/source/mcpskill"
	"ken/internal/untrusted"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxPages       = 1000
	maxName        = 256     // bytes of a name
	maxURI         = 8 << 10 // bytes of a URI
	maxDescription = 64 << 10
	maxSchema      = 1 << 20
	maxNotes       = 20 // of one kind; the rest are counted
)

// Lists is what a server offers, all pages of it. Notes say what was left out
// and why, safe to show.
type Lists struct {
	Tools     []*mcp.Tool
	Prompts   []*mcp.Prompt
	Resources []*mcp.Resource
	Templates []*mcp.ResourceTemplate
	Skills    []*mcpskill.Entry
	Notes     []string

	// Raw is the digest of the tools as the server wrote them; zero where that
	// was not seen, or is not all of them. Same says that they were not decoded,
	// because it is known.
	Raw  [sha256.Size]byte
	Same bool
}

// Lists reads everything that the server offers. Of two with one name the first
// is kept. What has no name, or is longer than a bound, is left out and noted.
// A server that says it has a kind and then does not know the request for it
// has none of it. Only tools that cannot be listed are an error: without the
// rest the tools still work, and a note says why there is none.
func (l *Link) Lists(ctx context.Context) (Lists, error) {
	return l.ListsUnless(ctx, func([sha256.Size]byte) bool { return false })
}

// ListsUnless is Lists, but does not decode the tools where known says so of their
// digest: most servers list the same at each start, and to decode 2,000 tools takes a
// quarter of a second.
func (l *Link) ListsUnless(ctx context.Context, known func(raw [sha256.Size]byte) bool) (Lists, error) {
	var out Lists
	if l.info.HasTools {
		if err := l.listTools(ctx, &out, known); err != nil {
			return Lists{}, err
		}
	}
	if l.info.HasPrompts {
		c := collector[mcp.Prompt]{what: "prompt", limit: l.cfg.MaxTools, key: func(p *mcp.Prompt) string { return p.Name }, bad: badPrompt}
		var err error
		if out.Prompts, err = optional(ctx, l, &out, &c, promptPage); err != nil {
			return Lists{}, err
		}
	}
	if l.info.HasResources {
		c := collector[mcp.Resource]{what: "resource", limit: l.cfg.MaxTools, key: func(r *mcp.Resource) string { return r.URI },
			bad: func(r *mcp.Resource) string { return badURI(r.URI, r.Description) }}
		t := collector[mcp.ResourceTemplate]{what: "resource template", limit: l.cfg.MaxTools, key: func(t *mcp.ResourceTemplate) string { return t.URITemplate },
			bad: func(t *mcp.ResourceTemplate) string { return badURI(t.URITemplate, t.Description) }}
		var err error
		if out.Resources, err = optional(ctx, l, &out, &c, resourcePage); err != nil {
			return Lists{}, err
		}
		if out.Templates, err = optional(ctx, l, &out, &t, templatePage); err != nil {
			return Lists{}, err
		}
	}
	if l.info.HasSkills {
		if err := l.listSkills(ctx, &out); err != nil {
			return Lists{}, err
		}
	}
	return out, nil
}

func (l *Link) listTools(ctx context.Context, out *Lists, known func(raw [sha256.Size]byte) bool) error {
	pages, raw := gather(ctx, l)
	if out.Raw = raw; raw != [sha256.Size]byte{} && known(raw) {
		out.Same = true
		return nil
	}
	c := collector[mcp.Tool]{what: "tool", limit: l.cfg.MaxTools, key: func(t *mcp.Tool) string { return t.Name }, bad: badTool}
	err := c.collect(func(cursor string) ([]*mcp.Tool, string, error) {
		p, gathered := pages[cursor]
		if !gathered {
			p = l.tap.toolPage(ctx, cursor)
		}
		delete(pages, cursor)
		if p.sent {
			return p.tools(c.say), p.Next, p.err
		}
		res, err := l.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		for _, t := range dropped(res) {
			if t == nil {
				c.say("a tool that is null is left out")
			} else {
				c.say("tool %s is left out: the x-mcp-header in its schema is not one that the protocol allows", untrusted.Line(t.Name, 80))
			}
		}
		return res.Tools, res.NextCursor, nil
	})
	if err != nil {
		return l.failure(ctx, request{op: "list tools"}, nil, err)
	}
	out.Tools, out.Notes = c.all, append(out.Notes, c.notes()...)
	return nil
}

// mostGathered bounds the pages that are held before they are decoded, in bytes.
const mostGathered = 32 << 20

// gather reads the pages of the list of tools without decoding them, by their
// cursors, and their digest. The digest is zero where these are not all pages, or
// not all of them count.
func gather(ctx context.Context, l *Link) (pages map[string]page, raw [sha256.Size]byte) {
	pages = map[string]page{}
	sum := sha256.New()
	var room [binary.MaxVarintLen64]byte
	cursor := ""
	for size, tools := 0, 0; size <= mostGathered && tools < l.cfg.MaxTools && len(pages) < maxPages; {
		if _, again := pages[cursor]; again {
			return pages, raw
		}
		p := l.tap.toolPage(ctx, cursor)
		if !p.sent {
			return pages, raw
		}
		pages[cursor] = p
		if p.err != nil {
			return pages, raw
		}
		sum.Write(binary.AppendUvarint(room[:0], uint64(len(p.text))))
		sum.Write(p.text)
		if p.Next == "" {
			sum.Sum(raw[:0])
			return pages, raw
		}
		cursor, size, tools = p.Next, size+len(p.text), tools+len(p.Tools)
	}
	return pages, raw
}

func promptPage(ctx context.Context, session *mcp.ClientSession, cursor string) ([]*mcp.Prompt, string, error) {
	res, err := session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	return res.Prompts, res.NextCursor, nil
}

func resourcePage(ctx context.Context, session *mcp.ClientSession, cursor string) ([]*mcp.Resource, string, error) {
	res, err := session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	return res.Resources, res.NextCursor, nil
}

func templatePage(ctx context.Context, session *mcp.ClientSession, cursor string) ([]*mcp.ResourceTemplate, string, error) {
	res, err := session.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
	if err != nil {
		return nil, "", err
	}
	return res.ResourceTemplates, res.NextCursor, nil
}

// optionalTime bounds the listing of each kind but tools.
const optionalTime = 10 * time.Second

// optional collects a list that may fail, as far as it goes. It is an error only
// where nothing more can be asked of the server.
func optional[T any](ctx context.Context, l *Link, out *Lists, c *collector[T], page func(context.Context, *mcp.ClientSession, string) ([]*T, string, error)) ([]*T, error) {
	limit := optionalTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2) // what comes after it has a chance, too
	}
	brief, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := c.collect(func(cursor string) ([]*T, string, error) { return page(brief, l.session, cursor) })
	if err != nil {
		failed := l.failure(brief, request{op: "list " + c.what + "s"}, nil, err)
		if ctx.Err() != nil || l.over() || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF) {
			return nil, failed
		}
		why := err
		if e, ok := errors.AsType[*capability.Error](failed); ok {
			why = e.Err
		}
		c.say("the %ss cannot be listed: %s", c.what, untrusted.Line(why.Error(), messageRunes))
	}
	out.Notes = append(out.Notes, c.notes()...)
	return c.all, nil
}

// A collector gathers the pages of one list.
type collector[T any] struct {
	what  string
	limit int
	key   func(*T) string
	bad   func(*T) string // why one is left out, or empty

	all     []*T
	said    []string
	unsaid  int
	endless bool
	cut     int
}

func (c *collector[T]) collect(page func(cursor string) ([]*T, string, error)) error {
	names := make(map[string]bool)
	cursors := map[string]bool{"": true}
	var cursor string
	for range maxPages {
		items, next, err := page(cursor)
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound {
			c.say("the server announces %ss but does not support listing them", c.what)
			return nil
		}
		if err != nil {
			return err
		}
		for _, item := range items {
			c.take(item, names)
		}
		if next == "" {
			return nil
		}
		if cursors[next] || len(c.all) >= c.limit {
			c.endless = cursors[next]
			c.cut += btoi(!c.endless)
			return nil
		}
		cursors[next] = true
		cursor = next
	}
	c.endless = true
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *collector[T]) take(item *T, names map[string]bool) {
	if item == nil {
		c.say("a %s that is null is left out", c.what)
		return
	}
	name := c.key(item)
	why := c.bad(item)
	switch {
	case why != "":
		c.say("%s %s is left out: %s", c.what, untrusted.Line(name, 80), why)
	case names[name]:
		c.say("duplicate %s %s: Ken uses the first one", c.what, untrusted.Line(name, 80))
	case len(c.all) >= c.limit:
		c.cut++
	default:
		names[name] = true
		c.all = append(c.all, item)
	}
}

func (c *collector[T]) say(format string, args ...any) {
	if len(c.said) >= maxNotes {
		c.unsaid++
		return
	}
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func (c *collector[T]) notes() []string {
	out := c.said
	if c.unsaid > 0 {
		out = append(out, fmt.Sprintf("%d more notes of this kind about %ss", c.unsaid, c.what))
	}
	if c.cut > 0 {
		out = append(out, fmt.Sprintf("more than %d %ss: the rest is cut (mcp.maxTools)", c.limit, c.what))
	}
	if c.endless {
		out = append(out, fmt.Sprintf("the list of %ss has no end: cut after %d", c.what, len(c.all)))
	}
	return out
}

func badName(name, description string) string {
	switch {
	case name == "":
		return "missing name"
	case len(name) > maxName:
		return fmt.Sprintf("the name has %d bytes, the limit is %d", len(name), maxName)
	case len(description) > maxDescription:
		return fmt.Sprintf("the description has %d bytes, the limit is %d", len(description), maxDescription)
	}
	return ""
}

func badURI(uri, description string) string {
	switch {
	case uri == "":
		return "missing uri"
	case len(uri) > maxURI:
		return fmt.Sprintf("the uri has %d bytes, the limit is %d", len(uri), maxURI)
	case len(description) > maxDescription:
		return fmt.Sprintf("the description has %d bytes, the limit is %d", len(description), maxDescription)
	}
	return ""
}

func badPrompt(p *mcp.Prompt) string { return badName(p.Name, p.Description) }

func badTool(t *mcp.Tool) string {
	if why := badName(t.Name, t.Description); why != "" {
		return why
	}
	for _, schema := range []any{t.InputSchema, t.OutputSchema} {
		if raw, ok := schema.(json.RawMessage); schema == nil || ok && len(raw) <= maxSchema/len(`\u0026`) {
			continue // however its characters are escaped
		}
		if data, err := json.Marshal(schema); err != nil || len(data) > maxSchema {
			return fmt.Sprintf("the schema has %d bytes, the limit is %d", len(data), maxSchema)
		}
	}
	return ""
}

// Complete asks the server how an argument may go on.
func (l *Link) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	var name string
	if p != nil && p.Ref != nil {
		name = p.Ref.Name + p.Ref.URI
	}
	res, err := l.session.Complete(ctx, p)
	if err != nil {
		return nil, l.failure(ctx, request{op: "complete argument of", name: name}, nil, err)
	}
	return res, nil
}

// Subscribe asks to be told in Config.Updated when a resource changes.
func (l *Link) Subscribe(ctx context.Context, uri string) error {
	if err := l.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		return l.failure(ctx, request{op: "subscribe to resource", name: uri}, nil, err)
	}
	return nil
}

// Unsubscribe takes a Subscribe back.
func (l *Link) Unsubscribe(ctx context.Context, uri string) error {
	if err := l.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}); err != nil {
		return l.failure(ctx, request{op: "unsubscribe from resource", name: uri}, nil, err)
	}
	return nil
}

// Ping returns nil if the server answers, whatever it answers: some protocols and
// some servers do not support ping.
func (l *Link) Ping(ctx context.Context) error {
	err := l.session.Ping(ctx, nil)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && ctx.Err() == nil && !errors.Is(err, mcp.ErrConnectionClosed) && e.Code != rejectedCode {
		return nil
	}
	return l.failure(ctx, request{op: "ping"}, nil, err)
}
