package mcpserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/know/source/mcptools"
	"ken/internal/testkit"
)

// appTool adds a tool of a server that has a page.
func (b *bench) appTool(id, page, only, not string) {
	server, name, _ := strings.Cut(strings.TrimPrefix(id, "mcp:"), "/")
	meta := map[string]string{mcptools.MetaExposed: server + "__" + name}
	for key, value := range map[string]string{mcptools.MetaApp: page, mcptools.MetaAppOnly: only, mcptools.MetaNotApp: not} {
		if value != "" {
			meta[key] = value
		}
	}
	extra, _ := json.Marshal(map[string]any{"_meta": map[string]any{"ui": map[string]any{"resourceUri": page}}})
	b.memory.Put(capability.Capability{
		ID: capability.ID(id), Kind: capability.KindTool, Name: name, Description: "Does " + name, Category: server, Effects: quiet,
		Run: &capability.Recipe{Runner: "mcp.call"}, Meta: meta,
	}, capability.Detail{Schema: json.RawMessage(`{"type":"object"}`), Extra: extra})
}

const page = "ui://chart/page.html"

func apps(b *bench) {
	b.appTool("mcp:a/chart", page, "", "")
	b.appTool("mcp:a/poll", page, "yes", "")
	b.appTool("mcp:a/secret", "", "", "yes")
	b.appTool("mcp:b/chart", page, "", "")
	b.appTool("mcp:b/poll", page, "yes", "")
	b.tool("mcp:a/read_resource", uriSchema, quiet, nil)
	b.tool("mcp:b/read_resource", uriSchema, quiet, nil)
	b.tool("tool:greet", nameSchema, quiet, greet)
}

// TestApps: a client that shows pages gets the tools with pages and those for pages
// only, on both surfaces. What a page calls by the server's own name is that page's
// call. Models and other clients do not see what is for pages only.
func TestApps(t *testing.T) {
	for _, surface := range []string{direct, bridge} {
		t.Run(surface, func(t *testing.T) {
			b := newBench(t, apps)
			cfg := b.config()
			cfg.Surface, cfg.Exposed = surface, func(e *door.Entry) string { return e.Meta[mcptools.MetaExposed] }
			cfg.Page = func(e *door.Entry) Page {
				return Page{Address: e.Meta[mcptools.MetaApp], Only: e.Meta[mcptools.MetaAppOnly] != "", Never: e.Meta[mcptools.MetaNotApp] != ""}
			}
			cfg.Backends = &shop{offers: []Offer{{Server: "a", Read: "mcp:a/read_resource"}, {Server: "b", Read: "mcp:b/read_resource"}}}
			s := New(cfg)
			host := &mcp.ClientCapabilities{}
			host.AddExtension(appsExtension, nil)
			for _, version := range []string{"2025-06-18", ""} {
				cs := dial(t, s, peer{name: "host" + version, version: version, opts: &mcp.ClientOptions{Capabilities: host}})
				var listed []string
				pages := map[string]string{}
				for tool, err := range cs.Tools(t.Context(), nil) {
					testkit.OK(t, err)
					listed = append(listed, tool.Name)
					if ui, ok := tool.Meta["ui"].(map[string]any); ok {
						pages[tool.Name], _ = ui["resourceUri"].(string)
					}
				}
				for _, want := range []string{"a__chart", "a__poll", "b__chart", "b__poll"} {
					if !slices.Contains(listed, want) {
						t.Fatalf("the host is offered %v, want %s in it", listed, want)
					}
				}
				if pages["a__chart"] != page || pages["b__chart"] != pageAlias("b", page) {
					t.Errorf("pages = %v, want another address for the second server", pages)
				}
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "poll"}); err == nil {
					t.Error("a call by a server's own name works before any page was read")
				}
				if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: pages["a__chart"]}); err != nil {
					t.Fatal(err)
				}
				if got := b.last(); got.Target != "mcp:a/read_resource" {
					t.Errorf("reading the page calls %s", got.Target)
				}
				for name, want := range map[string]capability.Caller{"poll": capability.ByApp, "a__poll": capability.ByApp, "chart": capability.ByApp, "a__chart": capability.ByModel} {
					if res := call(t, cs, name, nil); res.IsError {
						t.Errorf("%s: %s", name, text(res))
					}
					if got := b.last(); got.Origin != want || !strings.HasPrefix(string(got.Target), "mcp:a/") {
						t.Errorf("%s is the call %s by %q, want by %q", name, got.Target, got.Origin, want)
					}
				}
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret"}); err == nil {
					t.Error("a page calls what pages may not call")
				}
				if res := call(t, cs, "describe_capability", map[string]any{"id": "mcp:a/poll"}); !res.IsError {
					t.Errorf("a model is told of a tool for pages only: %s", text(res))
				}
				// Both servers have been read: it is not clear whose call it is.
				if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: pages["b__chart"]}); err != nil {
					t.Fatal(err)
				}
				if got := b.last(); got.Target != "mcp:b/read_resource" || string(got.Arguments) != `{"uri":"`+page+`"}` {
					t.Errorf("reading the second page calls %s %s", got.Target, got.Arguments)
				}
				if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "poll"}); err == nil || !strings.Contains(err.Error(), "mcp:a/poll or mcp:b/poll") {
					t.Errorf("a name that is not clear = %v", err)
				}

				plain := dial(t, s, peer{name: "plain" + version, version: version})
				if got := names(t, plain); slices.Contains(got, "a__poll") || slices.Contains(got, "a__chart") != (surface == direct) {
					t.Errorf("a client without pages is offered %v", got)
				}
				for _, name := range []string{"poll", "a__poll"} {
					if _, err := plain.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil {
						t.Errorf("a client without pages calls %s", name)
					}
				}
			}
		})
	}
}
