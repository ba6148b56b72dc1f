package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/executor/results"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/testkit"
	"ken/internal/testkit/runtest"
	"ken/internal/testkit/storetest"
)

var (
	ada = capability.Principal{ID: "ada"}
	eve = capability.Principal{ID: "eve", Roles: []string{"intern"}}
)

// A bench is a real door over a catalog of made-up tools.
type bench struct {
	own []capability.Capability // Ken's own tools in the catalog
	*door.Door
	catalog *catalog.Catalog
	memory  *source.Memory
	desk    *approval.Desk
	kept    *result.Store

	mu    sync.Mutex
	does  map[string]capability.InvokerFunc // by the name of the tool
	calls []capability.Call

	replies []Reply // to questions with a ticket
}

func (b *bench) Facts(context.Context, capability.Call, *capability.Capability) (runner.Facts, error) {
	return runner.Facts{}, nil
}

func (b *bench) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	b.mu.Lock()
	b.calls = append(b.calls, call)
	does := b.does[string(call.Target)]
	b.mu.Unlock()
	if does == nil {
		return capability.Result{Parts: []capability.Part{{Text: "done"}}}, nil
	}
	return does(ctx, call)
}

func (b *bench) last() capability.Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.calls) == 0 {
		return capability.Call{}
	}
	return b.calls[len(b.calls)-1]
}

var quiet = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}

const nameSchema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`

// tool adds a tool that does what f does.
func (b *bench) tool(id, schema string, e capability.Effects, f capability.InvokerFunc) {
	name := id[strings.LastIndexAny(id, ":/")+1:]
	c := capability.Capability{
		ID: capability.ID(id), Kind: capability.KindTool, Name: name, Description: "Does " + name, Category: "test", Effects: e,
		Run: &capability.Recipe{Runner: "mcp.call"},
	}
	if server, _, ok := strings.Cut(strings.TrimPrefix(id, "mcp:"), "/"); ok {
		c.Category = server
		switch name {
		case "read_resource":
			c.Run.Runner = "mcp.resource"
		case "get_prompt":
			c.Run.Runner = "mcp.prompt"
		}
	}
	b.memory.Put(c, capability.Detail{Schema: json.RawMessage(schema)})
	b.mu.Lock()
	b.does[id] = f
	b.mu.Unlock()
}

func (b *bench) load(t testing.TB) {
	t.Helper()
	testkit.OK(t, b.catalog.Load(context.Background()))
}

// newBench makes a bench; fill adds to it before it is loaded.
func newBench(t testing.TB, fill func(*bench)) *bench {
	t.Helper()
	b := &bench{does: map[string]capability.InvokerFunc{}, memory: source.NewMemory("test", capability.TrustUser)}
	if fill != nil {
		fill(b)
	}
	own := source.NewMemory("own", capability.TrustBuiltin)
	for _, tool := range results.Tools() {
		own.Put(tool.Capability, tool.Detail)
	}
	own.Put(capability.Capability{
		ID: "tool:run_command", Kind: capability.KindTool, Name: "run_command", Description: "Runs", Run: &capability.Recipe{Runner: "mcp.call"},
	}, capability.Detail{Schema: json.RawMessage(`{"type":"object"}`)})
	builtin := source.NewMemory("builtin", capability.TrustBuiltin)
	for _, c := range b.own {
		builtin.Put(c, capability.Detail{Schema: json.RawMessage(nameSchema)})
	}
	d := runtest.Open(t, runtest.Load(t, servers{b.memory}, builtin), runtest.Load(t, own), func(s *policy.Settings) {
		s.Rules = []policy.Rule{{ID: "no.guard", Effect: policy.Deny, Capabilities: []string{"tool:guard"}, Roles: []string{"intern"}, Reason: "an intern does not guard", Where: "test:1"}}
	})
	d.Run(t, storetest.Address(t), nil, func() runner.Executors {
		return runner.Executors{"mcp.*": b, "result.*": runner.FromExecutor(results.New(d.Kept))}
	})
	b.Door, b.catalog, b.desk, b.kept = d.Door, d.Catalog, d.Desk, d.Kept
	return b
}

// servers is an in-memory source that counts as an MCP server, because the
// catalog accepts server ids from no other source.
type servers struct{ *source.Memory }

func (s servers) Load(ctx context.Context) (capability.Batch, error) {
	b, err := s.Memory.Load(ctx)
	return asServers(b), err
}

func (s servers) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		for b, err := range s.Memory.Watch(ctx) {
			if !yield(asServers(b), err) {
				return
			}
		}
	}
}

func asServers(b capability.Batch) capability.Batch {
	b.Capabilities = slices.Clone(b.Capabilities)
	for i, c := range b.Capabilities {
		if strings.HasPrefix(string(c.ID), "mcp:") {
			one := *c
			one.Origin.Format = mcptools.Format
			b.Capabilities[i] = &one
		}
	}
	return b
}

// config wires a server to the bench as a program would.
func (b *bench) config() Config {
	return Config{
		Door: b.Door, Version: "1", Ask: b.ask, Settle: b.settle, Hasty: -1, // the tests' people are quick
		ApproveHint: func(ticket string) string { return "ken approve grant " + ticket },
	}
}

func (b *bench) ask(ctx context.Context, err error) (*Question, error) {
	q, ok := errors.AsType[*runner.Question](err)
	if !ok {
		return nil, nil
	}
	out := &Question{Name: q.Name, Ticket: q.Ticket, Text: q.Text}
	word := q.Ticket
	if q.Name == runner.AnswerAgain {
		word = q.Effect
	}
	out.Answer, _ = json.Marshal(word)
	if q.Ticket == "" {
		return out, nil
	}
	t, err := b.desk.Get(ctx, q.Ticket)
	if err != nil {
		return nil, err
	}
	for _, l := range t.Lines() {
		out.Lines = append(out.Lines, Line{l.Name, l.Text})
	}
	out.Wide = t.Question.Widest == approval.Session
	return out, nil
}

func (b *bench) settle(ctx context.Context, who capability.Principal, r Reply) error {
	b.mu.Lock()
	b.replies = append(b.replies, r)
	b.mu.Unlock()
	a := approval.Answer{By: who, Effect: approval.Yes, Scope: approval.Scope(r.Decision)}
	switch r.Decision {
	case Unasked:
		return nil
	case Deny:
		a.Effect, a.Scope = approval.No, approval.Once
	}
	_, err := b.desk.Settle(ctx, r.Ticket, a)
	return err
}

// A peer says which client connects.
type peer struct {
	name    string
	version string // of the protocol; empty is the newest
	opts    *mcp.ClientOptions
	who     capability.Principal
}

func (p peer) client() *mcp.Client {
	name := p.name
	if name == "" {
		name = "tester"
	}
	return mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, p.opts)
}

// dial connects a real client over a pipe.
func dial(t testing.TB, s *Server, p peer) *mcp.ClientSession {
	t.Helper()
	if p.who.ID == "" {
		p.who = ada
	}
	here, there := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), p.who, there, Hello{}) }()
	cs := testkit.Must(p.client().Connect(context.Background(), &mcp.IOTransport{Reader: here, Writer: here}, &mcp.ClientSessionOptions{ProtocolVersion: p.version}))(t)
	t.Cleanup(func() {
		cs.Close()
		here.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve() = %v, want nil when the client goes", err)
		}
	})
	return cs
}

// web serves over HTTP; the header X-Who says who asks.
func web(t testing.TB, s *Server) *httptest.Server {
	t.Helper()
	h := httptest.NewServer(s.Handler(func(r *http.Request) (capability.Principal, bool) {
		name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return capability.Principal{ID: name}, ok
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// as sends requests in somebody's name.
type as string

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// dialWeb connects a real client over HTTP.
func dialWeb(t testing.TB, h *httptest.Server, p peer) *mcp.ClientSession {
	t.Helper()
	if p.who.ID == "" {
		p.who = ada
	}
	cs := testkit.Must(p.client().Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: &http.Client{Transport: as(p.who.ID)}}, &mcp.ClientSessionOptions{ProtocolVersion: p.version}))(t)
	t.Cleanup(func() { cs.Close() })
	return cs
}

func text(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

func call(t testing.TB, cs *mcp.ClientSession, name string, args any) *mcp.CallToolResult {
	t.Helper()
	res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("CallTool(%s) = %v", name, err)
	}
	return res
}

func names(t testing.TB, cs *mcp.ClientSession) []string {
	t.Helper()
	var out []string
	for tool, err := range cs.Tools(context.Background(), nil) {
		testkit.OK(t, err)
		out = append(out, tool.Name)
	}
	return out
}

func greet(_ context.Context, c capability.Call) (capability.Result, error) {
	var in struct{ Name string }
	if err := json.Unmarshal(c.Arguments, &in); err != nil {
		return capability.Result{}, err
	}
	return capability.Result{Parts: []capability.Part{{Text: "hello " + in.Name}}}, nil
}

func office(b *bench) {
	b.tool("tool:greet", nameSchema, quiet, greet)
	b.tool("tool:guard", nameSchema, quiet, greet)
	b.tool("tool:write", nameSchema, capability.Effects{}, greet)
}

func many(n int) func(*bench) {
	return func(b *bench) {
		b.tool("tool:greet", nameSchema, quiet, greet)
		verbs := []string{"List", "Search", "Export", "Summarise", "Compare", "Archive", "Translate", "Validate"}
		things := []string{"invoices", "customers", "tickets", "repositories", "calendars", "photos", "contracts", "shipments", "sensors", "recipes"}
		for i := range n - 1 {
			id := fmt.Sprintf("mcp:server%d/tool_%d", i%20, i)
			b.tool(id, nameSchema, quiet, greet)
			verb, thing := verbs[i%len(verbs)], things[i/len(verbs)%len(things)]
			b.memory.Put(capability.Capability{
				ID: capability.ID(id), Kind: capability.KindTool, Name: fmt.Sprintf("%s_%s_%d", strings.ToLower(verb), thing, i), Category: fmt.Sprintf("server%d", i%20),
				Description: fmt.Sprintf("%s the %s of an account by name, with their owner, state and the date of the last change, newest first, as a table of at most fifty rows", verb, thing),
				Effects:     quiet, Run: &capability.Recipe{Runner: "mcp.call"},
			}, capability.Detail{Schema: json.RawMessage(nameSchema)})
		}
	}
}

var _ io.ReadWriteCloser = (net.Conn)(nil)
