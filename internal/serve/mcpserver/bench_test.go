package mcpserver

import (
	"context"
	"encoding/json"
	"net"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
)

// bare is what a pass-through costs at the least: a server of the SDK with one
// tool that does the same.
func bare(b *testing.B) *mcp.ClientSession {
	b.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "greet", InputSchema: json.RawMessage(nameSchema)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, err := greet(ctx, capability.Call{Arguments: r.Params.Arguments})
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: res.Parts[0].Text}}}, nil
	})
	here, there := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	go func() { _ = s.Run(ctx, &mcp.IOTransport{Reader: there, Writer: there}) }()
	cs, err := peer{}.client().Connect(ctx, &mcp.IOTransport{Reader: here, Writer: here}, nil)
	must(b, err)
	b.Cleanup(func() { cs.Close() })
	return cs
}

func benchCall(b *testing.B, cs *mcp.ClientSession, name string, args any) {
	b.ReportAllocs()
	before := cpuTime()
	for b.Loop() {
		if res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: args}); err != nil || res.IsError {
			b.Fatalf("CallTool(%s) = %+v, %v", name, res, err)
		}
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkCall compares a call through the door, with rules and a durable
// record, with the same tool on a bare server.
func BenchmarkCall(b *testing.B) {
	args := map[string]any{"name": "Ada"}
	b.Run("bare", func(b *testing.B) { benchCall(b, bare(b), "greet", args) })
	be := newBench(b, many(2000))
	s := New(be.config())
	b.Run("direct", func(b *testing.B) { benchCall(b, dial(b, s, peer{name: "Visual Studio Code"}), "greet", args) })
	b.Run("bridge", func(b *testing.B) {
		benchCall(b, dial(b, s, peer{}), toolInvoke, map[string]any{"capability": "tool:greet", "arguments": args})
	})
	b.Run("door", func(b *testing.B) { // what of it is the door's, with the record
		b.ReportAllocs()
		a, before := s.audience(ada), cpuTime()
		for b.Loop() {
			if _, err := be.Door.Invoke(context.Background(), a.view(), capability.Call{Target: "tool:greet", Arguments: json.RawMessage(`{"name":"Ada"}`), Session: "s"}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	})
}

// BenchmarkFind is a search among 2,000 tools.
func BenchmarkFind(b *testing.B) {
	s := New(newBench(b, many(2000)).config())
	benchCall(b, dial(b, s, peer{}), toolDiscover, map[string]any{"query": "search the customers of an account"})
}

// BenchmarkList lists 2,000 tools: through a client, and the server's part.
func BenchmarkList(b *testing.B) {
	s := New(newBench(b, many(2000)).config())
	for _, p := range []peer{{name: "zed", version: sessionful}, {name: "Visual Studio Code", version: sessionful}} { // newer clients keep lists
		surface := surfaceFor("", p.name)
		cs := dial(b, s, p)
		b.Run(surface, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cs.ListTools(context.Background(), &mcp.ListToolsParams{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(surface+"/menu", func(b *testing.B) {
			b.ReportAllocs()
			a := s.audience(ada)
			for b.Loop() {
				if _, err := a.menuFor(context.Background(), a.view(), surface); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("first", func(b *testing.B) { // nothing is ready yet
		for b.Loop() {
			a := New(s.cfg).audience(ada)
			if _, err := a.menuFor(context.Background(), a.view(), direct); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkConnect is a new client until it has its menu.
func BenchmarkConnect(b *testing.B) {
	s := New(newBench(b, many(2000)).config())
	for b.Loop() {
		visit(b, s)
	}
}

// visit is a client that connects, lists and goes.
func visit(t testing.TB, s *Server) {
	here, there := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), ada, there, Hello{}) }()
	cs, err := peer{}.client().Connect(context.Background(), &mcp.IOTransport{Reader: here, Writer: here}, nil)
	must(t, err)
	if _, err := cs.ListTools(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	cs.Close()
	here.Close()
	must(t, <-done)
}
