package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/testkit"
)

// TestS247StructuredContent: what a search finds and what a description says are
// structured content with the fields of the seed; the schema that is listed
// describes it, and the text stays for clients that know no other (S2.47,
// S2.U07). A mistake has neither.
func TestS247StructuredContent(t *testing.T) {
	for _, name := range []string{"Visual Studio Code", "zed"} { // direct and bridge
		b := newBench(t, func(b *bench) {
			office(b)
			b.memory.Put(capability.Capability{
				ID: "tool:lookup", Kind: capability.KindTool, Name: "lookup", Description: "Look up an account by its number", Category: "crm",
				Effects: capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}, Run: &capability.Recipe{Runner: "mcp.call"},
			}, capability.Detail{
				Schema: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}}}`),
				Output: json.RawMessage(`{"type":"object","properties":{"owner":{"type":"string"}}}`),
			})
		})
		cs := dial(t, New(b.config()), peer{name: name})
		list := testkit.Must(cs.ListTools(t.Context(), nil))(t)
		outputs := map[string]any{}
		for _, tool := range list.Tools {
			outputs[tool.Name] = tool.OutputSchema
		}
		found := structuredOf(t, outputs, call(t, cs, toolDiscover, map[string]any{"query": "look up an account by its number"}), toolDiscover)
		if n, ok := found["totalIndexed"].(float64); !ok || n < 2 {
			t.Errorf("%s: totalIndexed = %v, want a number", name, found["totalIndexed"])
		}
		first := found["capabilities"].([]any)[0].(map[string]any)
		for _, key := range []string{"id", "name", "kind", "description", "category", "relevance", "available"} {
			if _, ok := first[key]; !ok {
				t.Errorf("%s: %s is missing in %v", name, key, first)
			}
		}
		if first["id"] != "tool:lookup" || first["kind"] != "tool" || first["category"] != "crm" || first["available"] != true {
			t.Errorf("%s: found %v, want tool:lookup first", name, first)
		}
		about := structuredOf(t, outputs, call(t, cs, toolDescribe, map[string]any{"id": "tool:lookup"}), toolDescribe)
		raw, _ := json.Marshal([]any{about["inputSchema"], about["outputSchema"], about["annotations"]})
		want := `[{"properties":{"number":{"type":"integer"}},"type":"object"},{"properties":{"owner":{"type":"string"}},"type":"object"},{"openWorldHint":false,"readOnlyHint":true}]`
		if string(raw) != want {
			t.Errorf("%s: described as %s, want %s", name, raw, want)
		}
		wrong := call(t, cs, toolDiscover, map[string]any{"query": ""})
		if !wrong.IsError || wrong.StructuredContent != nil {
			t.Errorf("%s: an empty query gives %+v, want an error without structured content", name, wrong)
		}
	}
}

// Clients that show their model the data of a result get the text of Ken's own tools
// alone, by the name that they give themselves or by that in ken connect.
func TestTextOnly(t *testing.T) {
	qwen := ada
	qwen.Agent = "qwen"
	for _, peer := range []peer{{name: "claude-code"}, {name: "codex-mcp-client"}, {name: "other", who: qwen}} {
		b := newBench(t, office)
		cs := dial(t, New(b.config()), peer)
		list := testkit.Must(cs.ListTools(t.Context(), nil))(t)
		for _, tool := range list.Tools {
			if reserved(tool.Name) && tool.OutputSchema != nil {
				t.Errorf("%s: %s has the output schema %v, want none", peer.name, tool.Name, tool.OutputSchema)
			}
		}
		res := call(t, cs, toolDiscover, map[string]any{"query": "greet a person"})
		if res.IsError || res.StructuredContent != nil || text(res) == "" {
			t.Errorf("%s: a search answers %+v, want text alone", peer.name, res)
		}
	}
}

// structuredOf checks a result against the schema that its tool is listed with.
func structuredOf(t *testing.T, outputs map[string]any, res *mcp.CallToolResult, tool string) map[string]any {
	t.Helper()
	if res.IsError || text(res) == "" || outputs[tool] == nil {
		t.Fatalf("%s: %+v, output schema %v; want a result with text, and a schema", tool, res, outputs[tool])
	}
	raw := testkit.Must(json.Marshal(outputs[tool]))(t)
	var s jsonschema.Schema
	testkit.OK(t, json.Unmarshal(raw, &s))
	resolved := testkit.Must(s.Resolve(nil))(t)
	if err := resolved.Validate(res.StructuredContent); err != nil {
		t.Errorf("%s: %v does not fit its schema: %v", tool, res.StructuredContent, err)
	}
	data, ok := res.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("%s: structured content is %v", tool, res.StructuredContent)
	}
	return data
}
