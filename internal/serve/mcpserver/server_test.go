package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/tokenizer"
)

func intents() []string {
	return []string{"PLAN", "CODE", "ANALYZE", "DEBUG", "WRITE_FILE", "READ_FILE", "EXECUTE"}
}

// ways runs a test for clients of every version, over a pipe and over HTTP; in
// make test for two of them.
func ways(t *testing.T, f func(t *testing.T, version string, connect func(*testing.T, *Server, peer) *mcp.ClientSession)) {
	t.Helper()
	for _, version := range mcp.SupportedProtocolVersions() {
		for _, pipe := range []bool{true, false} {
			name, connect := "/http", func(t *testing.T, s *Server, p peer) *mcp.ClientSession { return dialWeb(t, web(t, s), p) }
			if pipe {
				name, connect = "/pipe", func(t *testing.T, s *Server, p peer) *mcp.ClientSession { return dial(t, s, p) }
			}
			if usual := version == sessionful && pipe || version == sessionless && !pipe; usual || !testing.Short() {
				t.Run(version+name, func(t *testing.T) {
					f(t, version, func(t *testing.T, s *Server, p peer) *mcp.ClientSession {
						p.version = version
						return connect(t, s, p)
					})
				})
			}
		}
	}
}

// each runs a test with a client of every version, over a pipe and over HTTP.
func each(t *testing.T, s *Server, p peer, f func(t *testing.T, cs *mcp.ClientSession)) {
	t.Helper()
	ways(t, func(t *testing.T, _ string, connect func(*testing.T, *Server, peer) *mcp.ClientSession) {
		f(t, connect(t, s, p))
	})
}

// directly is a server that shows its tools themselves.
func directly(t *testing.T, fill func(*bench)) (*bench, *Server) {
	t.Helper()
	b := newBench(t, fill)
	cfg := b.config()
	cfg.Surface = direct
	return b, New(cfg)
}

// TestEveryVersionCalls: clients of all versions list, call, and are told what
// is wrong in the words of the protocol.
func TestEveryVersionCalls(t *testing.T) {
	b, s := directly(t, office)
	each(t, s, peer{}, func(t *testing.T, cs *mcp.ClientSession) {
		if got, want := names(t, cs), []string{toolDescribe, toolDiscover, "greet", "guard", toolRead, "write"}; !slices.Equal(got, want) {
			t.Errorf("ListTools() = %v, want %v", got, want)
		}
		if res := call(t, cs, "greet", map[string]any{"name": "Ada"}); res.IsError || text(res) != "hello Ada" {
			t.Errorf("CallTool(greet) = %q, error %v; want a greeting", text(res), res.IsError)
		}
		if got := b.last(); got.Surface != "mcp" || got.Principal.ID != "ada" || got.Session == "" || got.Target != "tool:greet" {
			t.Errorf("the call was %+v, want one of ada at mcp in a session", got)
		}
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"})
		testkit.Equal(t, fmt.Sprintf("CallTool(nothing) = %v with code", err), code(err), jsonrpc.CodeInvalidParams)
		_, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///none"})
		want := int64(codeNotFound)
		if strings.Contains(t.Name(), sessionless) {
			want = jsonrpc.CodeInvalidParams
		}
		testkit.Equal(t, fmt.Sprintf("ReadResource(none) = %v with code", err), code(err), want)
	})
}

func code(err error) int64 {
	var e *jsonrpc.Error
	for ; err != nil; err = unwrap(err) {
		if w, ok := err.(*jsonrpc.Error); ok {
			e = w
		}
	}
	if e == nil {
		return 0
	}
	return e.Code
}

func unwrap(err error) error {
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		return x.Unwrap()
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			if code(e) != 0 {
				return e
			}
		}
	}
	return nil
}

// TestBridge: a model has a handful of tools, those that are pinned, and one that
// says what its calls are for. The script mcp_standalone has how it finds and calls.
func TestBridge(t *testing.T) {
	b := newBench(t, office)
	cfg := b.config()
	cfg.Intents, cfg.Pinned = intents, []string{"tool:greet", "tool:absent"}
	each(t, New(cfg), peer{}, func(t *testing.T, cs *mcp.ClientSession) {
		want := []string{toolDescribe, toolDiscover, "greet", toolInvoke, toolRead, toolIntent}
		testkit.Equal(t, "ListTools()", names(t, cs), want)
		if res := call(t, cs, "greet", map[string]any{"name": "Pin"}); res.IsError || text(res) != "hello Pin" {
			t.Errorf("the pinned tool = %q, error %v; want a greeting", text(res), res.IsError)
		}
		if res := call(t, cs, toolIntent, map[string]any{"intent": "CODE"}); res.IsError || !strings.Contains(text(res), "CODE") {
			t.Errorf("select_active_intent = %q, want that it is CODE", text(res))
		}
		call(t, cs, "greet", map[string]any{"name": "Pin"})
		testkit.Equal(t, "the call after has the intent", b.last().Intent, "CODE")
		if res := call(t, cs, toolIntent, map[string]any{"intent": "NAP"}); !res.IsError || !strings.Contains(text(res), "PLAN, CODE") {
			t.Errorf("select_active_intent(NAP) = %q, want the list of intents", text(res))
		}
	})
}

// TestIntentsAreAskedForEachTime: rules that come to ask for intents bring the tool
// that selects one, and take it away again.
func TestIntentsAreAskedForEachTime(t *testing.T) {
	b := newBench(t, office)
	cfg := b.config()
	var asked atomic.Bool
	cfg.Intents = func() []string {
		if asked.Load() {
			return intents()
		}
		return nil
	}
	s := New(cfg)
	for _, want := range []bool{false, true, false} {
		asked.Store(want)
		cs := dial(t, s, peer{}) // each keeps the list that it had
		if got := names(t, cs); slices.Contains(got, toolIntent) != want {
			t.Errorf("ListTools() = %v, want %s in it: %v", got, toolIntent, want)
		}
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: toolIntent, Arguments: map[string]any{"intent": "CODE"}})
		if works := err == nil && !res.IsError; works != want {
			t.Errorf("%s = %+v, %v, want it to work: %v", toolIntent, res, err, want)
		}
	}
}

// TestOwnToolsSayWhatTheyDo: clients that ask before each tool can let those of
// Ken through that only read.
func TestOwnToolsSayWhatTheyDo(t *testing.T) {
	cfg := newBench(t, many(3)).config()
	cfg.Intents = intents
	list := testkit.Must(dial(t, New(cfg), peer{}).ListTools(t.Context(), nil))(t)
	for _, tool := range list.Tools {
		reads := tool.Name != toolInvoke && tool.Name != toolIntent
		if tool.Title == "" || (tool.Annotations != nil && tool.Annotations.ReadOnlyHint) != reads {
			t.Errorf("%s: title %q, annotations %+v, want a title and readOnlyHint %v", tool.Name, tool.Title, tool.Annotations, reads)
		}
	}
}

// TestMenuIsSmall: the whole answer to tools/list takes at most 400 tokens with
// two thousand tools behind it, and a search for five at most 600.
func TestMenuIsSmall(t *testing.T) {
	testkit.CI(t, "2,000 tools")
	b := newBench(t, many(2000))
	cfg := b.config()
	cfg.Intents = intents
	s := New(cfg)
	for _, version := range []string{sessionful, sessionless} {
		cs := dial(t, s, peer{version: version})
		m := testkit.Must(s.audience(ada).menuFor(t.Context(), s.audience(ada).view(), bridge))(t)
		var seen []byte // the list as a model reads it: schemas of results are for the client
		for _, item := range m.items {
			seen = append(seen, forModel(item)...)
		}
		if n := tokenizer.Count(string(seen)); n > 400 {
			t.Errorf("%s: the menu takes %d tokens, want at most 400:\n%s", version, n, seen)
		} else {
			t.Logf("%s: the menu takes %d tokens", version, n)
		}
		for _, tool := range names(t, cs) {
			if !reserved(tool) {
				t.Errorf("%s is on the menu", tool)
			}
		}
		list := testkit.Must(cs.ListTools(t.Context(), nil))(t)
		for _, tool := range list.Tools {
			if tool.Meta["anthropic/alwaysLoad"] != true {
				t.Errorf("%s has _meta %v, want that it is always loaded", tool.Name, tool.Meta)
			}
		}
		res := call(t, cs, toolDiscover, map[string]any{"query": "search the customers of an account"})
		if found := strings.Count(text(res), "mcp:server"); found < 5 {
			t.Errorf("%s: a search found %d, want five: %s", version, found, text(res))
		}
		raw, _ := json.Marshal(res.Content) // the structured part says the same to a program
		if n := tokenizer.Count(string(raw)); n > 600 || res.IsError {
			t.Errorf("%s: a search takes %d tokens, want at most 600: %s", version, n, raw)
		} else {
			t.Logf("%s: a search takes %d tokens", version, n)
		}
	}
}

// TestSurfaceByClient is the table of clients.
func TestSurfaceByClient(t *testing.T) {
	for _, test := range []struct{ wanted, client, want string }{
		{"auto", "claude-code", bridge}, {"", "codex-mcp-client", direct}, {"auto", "Visual Studio Code", direct},
		{"auto", "Visual Studio Code - Insiders", direct}, {"auto", "cursor-vscode", bridge}, {"auto", "gemini-cli-mcp-client", bridge},
		{"auto", "", bridge}, {"auto", "not visual studio code", bridge}, {"direct", "zed", direct}, {"bridge", "claude-code", bridge}, {"nonsense", "zed", bridge},
	} {
		testkit.Equal(t, fmt.Sprintf("surfaceFor(%q, %q)", test.wanted, test.client), surfaceFor(test.wanted, test.client), test.want)
	}
	of := Config{Surface: "auto", Surfaces: map[string]string{"mine": direct, "claude": bridge, "claude-desktop": direct, "free": "auto"}}
	for _, test := range []struct{ agent, client, asked, want string }{
		{"", "zed", "", bridge}, {"", "zed", direct, direct}, {"", "claude-code", "", bridge}, {"", "Claude-Desktop", "", direct}, {"mine", "claude-code", bridge, direct},
		{"free", "codex-mcp-client", "", direct}, {"free", "codex-mcp-client", bridge, bridge}, {"other", "", "", bridge},
	} {
		testkit.Equal(t, fmt.Sprintf("surface(%q, %q, %q)", test.agent, test.client, test.asked), of.surface(test.agent, test.client, test.asked), test.want)
	}
	b := newBench(t, office)
	cs := dial(t, New(b.config()), peer{name: "Visual Studio Code"})
	if got := names(t, cs); !slices.Contains(got, "greet") {
		t.Errorf("Visual Studio Code is shown %v, want the tools themselves", got)
	}
}

// TestPages: a list of more than a page is read to its end, and a cursor that
// is none is refused.
func TestPages(t *testing.T) {
	testkit.CI(t, "2,300 tools")
	_, s := directly(t, many(2300))
	cs := dial(t, s, peer{})
	got := names(t, cs)
	if len(got) != 2303 || !slices.IsSorted(got) || len(slices.Compact(got)) != 2303 {
		t.Errorf("ListTools gives %d, sorted %v; want 2303, each once", len(got), slices.IsSorted(got))
	}
	if _, err := cs.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "%%"}); code(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("ListTools(%%%%) = %v, want invalid params", err)
	}
}

// TestNames: names that clients would refuse, that are taken, or that are Ken's
// own, are made ones that are not.
func TestNames(t *testing.T) {
	_, s := directly(t, func(b *bench) {
		b.tool("mcp:a/search", nameSchema, quiet, greet)
		b.tool("mcp:b/search", nameSchema, quiet, greet)
		b.tool("mcp:a/note", nameSchema, quiet, greet) // as one of Ken's own
		b.own = append(b.own, capability.Capability{ID: "tool:note", Kind: capability.KindTool, Name: "note", Description: "Notes", Effects: quiet, Run: &capability.Recipe{Runner: "mcp.call"}})
		b.tool("mcp:c/has space.and:dots", nameSchema, quiet, greet)
		b.tool("mcp:d/"+strings.Repeat("long", 75), nameSchema, quiet, greet)
	})
	cs := dial(t, s, peer{})
	got := names(t, cs)
	if res := call(t, cs, "note", map[string]any{"name": "x"}); strings.Contains(text(res), "hello") {
		t.Errorf("CallTool(note) = %q, want Ken's own tool", text(res))
	}
	for _, want := range []string{"search", "b__search", "note", "a__note"} {
		if !slices.Contains(got, want) {
			t.Errorf("ListTools() = %v, want %s", got, want)
		}
	}
	for _, name := range got {
		if len(name) > maxName || fitting(name) != name {
			t.Errorf("%q is no name for clients", name)
		}
		if !reserved(name) {
			if res := call(t, cs, name, map[string]any{"name": "x"}); res.IsError {
				t.Errorf("CallTool(%s) = %q", name, text(res))
			}
		}
	}
}

// TestSchemaErrorShowsTheSchema: a model that got the arguments wrong reads
// what they must be, as far as that is not too long.
func TestSchemaErrorShowsTheSchema(t *testing.T) {
	_, s := directly(t, func(b *bench) {
		b.tool("tool:big", `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","description":"`+strings.Repeat("word ", 20000)+`"}}}`, quiet, greet)
	})
	cs := dial(t, s, peer{})
	res := call(t, cs, "big", map[string]any{})
	if got := text(res); !res.IsError || tokenizer.Count(got) > schemaTokens+200 || !strings.Contains(got, "has the rest") {
		t.Errorf("CallTool(big) takes %d tokens, want at most about %d and where the rest is", tokenizer.Count(got), schemaTokens)
	}
}

// TestLongResults: a model gets an excerpt, a handle and how to read on; what it
// reads is the same session's.
func TestLongResults(t *testing.T) {
	long := strings.Repeat("0123456789abcdef\n", 20000)
	b := newBench(t, func(b *bench) {
		b.tool("tool:long", `{"type":"object"}`, quiet, func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{Parts: []capability.Part{{Text: long}}}, nil
		})
	})
	each(t, New(b.config()), peer{name: "Visual Studio Code"}, func(t *testing.T, cs *mcp.ClientSession) {
		res := call(t, cs, "long", nil)
		handle, _ := res.Meta[metaHandle].(string)
		if len(text(res)) > len(long)/2 || handle == "" || !strings.Contains(text(res), "read_result, handle "+handle) {
			t.Fatalf("CallTool gives %d bytes, _meta %v; want an excerpt that names its handle", len(text(res)), res.Meta)
		}
		read := call(t, cs, toolRead, map[string]any{"handle": handle, "op": "lines", "from": 10000, "to": 10001})
		if read.IsError || !strings.Contains(text(read), "0123456789abcdef\n0123456789abcdef") {
			t.Errorf("read_result = %q, want two lines", text(read))
		}
		gone := call(t, cs, toolRead, map[string]any{"handle": "r0gone"})
		if !gone.IsError || !strings.Contains(text(gone), "result not found") {
			t.Errorf("read_result of an unknown handle = %q, want that there is no such result", text(gone))
		}
	})
}

// TestServeEndsCleanly: neither goroutines nor sessions stay behind.
func TestServeEndsCleanly(t *testing.T) {
	b := newBench(t, office)
	ignore := goleak.IgnoreCurrent()
	var ended []string
	cfg := b.config()
	cfg.EndSession = func(id string) { ended = append(ended, id) }
	s := New(cfg)
	t.Run("clients", func(t *testing.T) {
		for range 3 {
			names(t, dial(t, s, peer{}))
		}
	})
	if len(ended) != 3 || ended[0] == ended[1] {
		t.Errorf("ended sessions = %v, want three different ones", ended)
	}
	testkit.Equal(t, "endpoints are left", len(s.endpoints), 0)
	if err := s.Serve(t.Context(), capability.Principal{}, nopConn{}, Hello{}); capability.KindOf(err) != capability.Denied {
		t.Errorf("Serve for nobody = %v, want Denied", err)
	}
	goleak.VerifyNone(t, ignore)
}

type nopConn struct{}

func (nopConn) Read([]byte) (int, error)    { return 0, nil }
func (nopConn) Write(p []byte) (int, error) { return len(p), nil }
func (nopConn) Close() error                { return nil }
