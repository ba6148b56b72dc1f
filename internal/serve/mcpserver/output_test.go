package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/testkit"
)

const rowsSchema = `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"string"}}},"required":["rows"]}`

// promising adds a tool with a schema of its results.
func promising(b *bench, id, output string, parts ...capability.Part) {
	name := id[strings.LastIndexByte(id, '/')+1:]
	b.memory.Put(capability.Capability{
		ID: capability.ID(id), Kind: capability.KindTool, Name: name, Description: "Does " + name, Category: "s", Effects: quiet, Run: &capability.Recipe{Runner: "mcp.call"},
	}, capability.Detail{Schema: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(output)})
	b.does[id] = func(context.Context, capability.Call) (capability.Result, error) {
		return capability.Result{Parts: parts}, nil
	}
}

func structuredPart(text string) capability.Part {
	return capability.Part{JSON: json.RawMessage(text), MIME: "application/json"}
}

// TestOutputSchema: a tool is listed with the schema of its results where every
// client can use that, and its results keep what it promises, however long.
func TestOutputSchema(t *testing.T) {
	long := `{"rows":["` + strings.Repeat("x", 60_000) + `"],"big":12345678901234567890}`
	b := newBench(t, func(b *bench) {
		promising(b, "mcp:s/rows", " "+rowsSchema+"\n", capability.Part{Text: "one row"}, structuredPart(`{"rows":["a"]}`))
		promising(b, "mcp:s/long", rowsSchema, capability.Part{Text: long}, structuredPart(long))
		promising(b, "mcp:s/alone", rowsSchema, structuredPart(long))
		promising(b, "mcp:s/forgets", rowsSchema, capability.Part{Text: "one row"})
		promising(b, "mcp:s/list", `{"type":"array"}`, capability.Part{Text: "x"})
		promising(b, "mcp:s/dangling", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, capability.Part{Text: "x"})
		promising(b, "mcp:s/none", ``, capability.Part{Text: "x"})
	})
	cfg := b.config()
	cfg.Surface = direct
	for _, version := range []string{"2025-06-18", sessionful, sessionless} {
		t.Run(version, func(t *testing.T) {
			cs := dial(t, New(cfg), peer{version: version})
			list := testkit.Must(cs.ListTools(t.Context(), nil))(t)
			for _, tool := range list.Tools {
				if tool.Name == toolDiscover || tool.Name == toolDescribe {
					continue // see TestS247StructuredContent
				}
				got, _ := json.Marshal(tool.OutputSchema)
				want := "null"
				switch tool.Name {
				case "rows", "long", "alone", "forgets":
					want = `{"properties":{"rows":{"items":{"type":"string"},"type":"array"}},"required":["rows"],"type":"object"}`
				}
				if string(got) != want {
					t.Errorf("outputSchema of %s = %s, want %s", tool.Name, got, want)
				}
			}
			for name, want := range map[string]string{"rows": `{"rows":["a"]}`, "long": long, "alone": long} {
				raw := rawCall(t, New(cfg), version, name)
				if string(raw.Structured) != want || raw.IsError {
					t.Errorf("%s: structuredContent has %d bytes (failed: %v), want the %d that the server sent", name, len(raw.Structured), raw.IsError, len(want))
				}
				if name == "long" && (len(raw.Content) != 1 || len(raw.Content[0].Text) > 30_000 || !strings.Contains(raw.Content[0].Text, "read_result")) {
					t.Errorf("long: the text has %d bytes in %d blocks, want it cut with a handle", len(raw.Content[0].Text), len(raw.Content))
				}
			}
			if raw := rawCall(t, New(cfg), version, "forgets"); !raw.IsError || len(raw.Content) != 3 || raw.Content[1].Text != "one row" ||
				!strings.Contains(raw.Content[0].Text, "The call was made") || !strings.Contains(raw.Content[0].Text, "do not make it again") {
				t.Errorf("forgets = %+v, want its text, as a failure that a client reads, which says first that the call was made", raw)
			}
			if raw := rawCall(t, New(cfg), version, "none"); raw.IsError || raw.Structured != nil {
				t.Errorf("none = %+v, want a plain result", raw)
			}
		})
	}
}

// TestOutputBridged: what is called through invoke_capability promises nothing,
// and is cut.
func TestOutputBridged(t *testing.T) {
	long := `{"rows":["` + strings.Repeat("x", 60_000) + `"]}`
	b := newBench(t, func(b *bench) { promising(b, "mcp:s/long", rowsSchema, structuredPart(long)) })
	cs := dial(t, New(b.config()), peer{version: sessionful})
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: toolInvoke, Arguments: map[string]any{"capability": "mcp:s/long"}})
	if err != nil || res.IsError || res.StructuredContent != nil {
		t.Errorf("invoke_capability = %v, %v, want a result without a structured part", err, res)
	}
}

type rawResult struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// rawCall lists the tools and calls one, and gives the result as it is written.
func rawCall(t *testing.T, s *Server, version, name string) (out rawResult) {
	t.Helper()
	h := web(t, s)
	defer h.Close()
	meta, header := "", map[string]string{headerVersion: version}
	if version >= sessionless {
		meta = fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}`, version)
	} else {
		header = begin(t, h, version, "{}").header
	}
	ask := func(method, params string) []byte {
		if version >= sessionless {
			header["Mcp-Method"] = method
			if method == "tools/call" {
				header["Mcp-Name"] = name
			}
		}
		return answerOf(t, post(t, h.URL, `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{`+strings.TrimPrefix(params+meta, ",")+`}}`, header))
	}
	ask("tools/list", "")
	var m struct{ Result rawResult }
	testkit.OK(t, json.Unmarshal(ask("tools/call", `"name":"`+name+`","arguments":{}`), &m))
	return m.Result
}

// answerOf returns the message that a response holds, as JSON or in a stream.
func answerOf(t *testing.T, res *http.Response) []byte {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d %s, %v", res.StatusCode, body, err)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return body
	}
	for line := range strings.Lines(string(body)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"result"`) {
			return []byte(data)
		}
	}
	t.Fatalf("no answer in %s", body)
	return nil
}
