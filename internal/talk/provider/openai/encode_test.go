package openai

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ken/internal/talk/provider"
	"ken/internal/testkit/wiretest"
	"ken/llm"
)

func tool(name string) llm.Tool {
	return llm.Tool{Name: name, Description: "Does " + name + ".", Schema: json.RawMessage(`{"type":"object","properties":{"p":{"type":"string"}}}`)}
}

// everything is a conversation with all that a wire without tools in the middle
// can say, and some that it must not choke on.
func everything() llm.Request {
	pixel := &llm.Image{MIME: "image/png", Data: []byte{0x89, 'P', 'N', 'G'}}
	return llm.Request{
		Tools: []llm.Tool{tool("read"), tool("list"), {Name: "bare"}}, System: "Be <brief> & \"kind\".\n", MaxTokens: 500,
		Allowed: []string{"list", "gone"}, Cache: "session-1", Effort: "low",
		Messages: []llm.Message{
			{Role: llm.User, Blocks: []llm.Block{{Text: "Look:"}, {Image: pixel}, {Text: "What is \xff it?"}}},
			{Role: llm.Assistant, Blocks: []llm.Block{
				{Reasoning: &llm.Reasoning{Text: "hm", Wire: "openai-chat", Opaque: json.RawMessage(`{"reasoning_content":"hm"}`)}},
				{Reasoning: &llm.Reasoning{Text: "so", Wire: "openai-responses", Opaque: json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ENC"}`)}},
				{Reasoning: &llm.Reasoning{Text: "no", Wire: "openai-responses", Opaque: json.RawMessage(`{"type":"reasoning","id":"rs_2","summary":[]}`)}},
				{Reasoning: &llm.Reasoning{Wire: "openai-responses", Opaque: json.RawMessage(`{"phase":"commentary","type":"message"}`)}},
				{Reasoning: &llm.Reasoning{Text: "else", Wire: "anthropic", Opaque: json.RawMessage(`{"signature":"x"}`)}},
				{Reasoning: &llm.Reasoning{Text: "alike", Wire: "another", Opaque: json.RawMessage(`{"type":"reasoning","id":"rs_0","summary":[],"encrypted_content":"NOT OURS","reasoning_content":"NOT OURS"}`)}},
				{Text: "I look."},
				{Call: &llm.ToolCall{ID: "c1", Name: "read", Arguments: []byte(`{"p": "a"}`)}},
				{Call: &llm.ToolCall{ID: "c2", Name: "in.vented name", Arguments: []byte("{broken \"")}},
				{Call: &llm.ToolCall{ID: "c3", Name: "list", Arguments: nil, Opaque: json.RawMessage(`{"thoughtSignature":"of another wire"}`)}},
				{Call: &llm.ToolCall{ID: "c4", Name: "list", Arguments: []byte(`[1]`), Opaque: json.RawMessage(`{"openai-chat":{"google":{"thought_signature":"s"}}}`)}},
			}},
			{Role: llm.User, Blocks: []llm.Block{
				{Result: &llm.ToolResult{ID: "c1", Name: "read", Blocks: []llm.Block{{Text: "one"}, {Image: pixel}}}},
				{Result: &llm.ToolResult{ID: "c2", Name: "in.vented name", Failed: true, Blocks: []llm.Block{{Text: "no such tool"}}}},
				{Result: &llm.ToolResult{ID: "c3", Name: "list", Blocks: []llm.Block{{Text: "a"}, {Text: "b"}}}},
				{Result: &llm.ToolResult{ID: "c4", Name: "list"}},
				{Text: "And then?"},
			}},
			{Role: llm.Assistant, Blocks: []llm.Block{
				{Text: "Done."},
				{Reasoning: &llm.Reasoning{Text: "nothing follows", Wire: "openai-responses", Opaque: json.RawMessage(`{"type":"reasoning","id":"rs_9","summary":[],"encrypted_content":"ENC"}`)}},
			}},
			{Role: llm.User, Blocks: []llm.Block{{Text: "Thanks"}, {Text: "a lot"}}},
		},
	}
}

// givesTools adds tools in the middle.
func givesTools(req llm.Request) llm.Request {
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
			{Call: &llm.ToolCall{ID: "s1", Name: "list", Arguments: []byte(`{"q":"mail"}`)}},
			{Call: &llm.ToolCall{ID: "s2", Name: "list", Arguments: []byte(`{"q":"x"}`), Opaque: json.RawMessage(`{"openai-responses":"tool_search_call"}`)}},
		}},
		llm.Message{Role: llm.User, Blocks: []llm.Block{
			{Result: &llm.ToolResult{ID: "s1", Name: "list", Blocks: []llm.Block{{Text: "1 found"}, {Tools: []llm.Tool{tool("mail")}}}}},
			{Result: &llm.ToolResult{ID: "s2", Name: "list", Blocks: []llm.Block{{Text: "none found"}}}},
		}},
		llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: "New ones:"}, {Tools: []llm.Tool{tool("post"), tool("fetch")}}, {Text: "Go on."}}},
	)
	req.Allowed = []string{"mail", "list", "post"}
	return req
}

// TestRequests compares whole requests with those in testdata.
func TestRequests(t *testing.T) {
	cfg := ofRequest(named(provider.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m"}), everything())
	openai := ofRequest(named(provider.Config{Model: "gpt-9"}), everything())
	for _, test := range []struct {
		name   string
		encode func() ([]byte, omit, error)
	}{
		{"chat", func() ([]byte, omit, error) { return encodeChat(cfg, everything(), 0) }},
		{"chat_openai", func() ([]byte, omit, error) { return encodeChat(openai, everything(), 0) }},
		{"chat_least", func() ([]byte, omit, error) { return encodeChat(cfg, everything(), ^omit(0)) }},
		{"responses", func() ([]byte, omit, error) { return encodeResponses(cfg, everything(), false, 0) }},
		{"responses_marked", func() ([]byte, omit, error) { return encodeResponses(cfg, everything(), true, 0) }},
		{"responses_tools", func() ([]byte, omit, error) { return encodeResponses(cfg, givesTools(everything()), false, 0) }},
		{"responses_least", func() ([]byte, omit, error) { return encodeResponses(cfg, everything(), true, ^omit(0)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			body, _, err := test.encode()
			if err != nil {
				t.Fatalf("encode = %v", err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, body, "", " "); err != nil {
				t.Fatalf("encode = %q, not JSON: %v", body, err)
			}
			got.WriteByte('\n')
			file := "testdata/request/" + test.name + ".json"
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("encode =\n%swant what %s has", got.Bytes(), file)
			}
		})
	}
}

// TestSchemaThatIsNoObject checks that a broken schema is named before it is sent.
func TestSchemaThatIsNoObject(t *testing.T) {
	req := llm.Request{Tools: []llm.Tool{{Name: "bad", Schema: json.RawMessage(`{"type":`)}}}
	for _, encode := range []func() ([]byte, omit, error){
		func() ([]byte, omit, error) { return encodeChat(provider.Config{}, req, 0) },
		func() ([]byte, omit, error) { return encodeResponses(provider.Config{}, req, false, 0) },
	} {
		if _, _, err := encode(); llm.KindOf(err) != llm.Invalid || !strings.Contains(err.Error(), "bad") {
			t.Errorf("encode = %v, want invalid that names the tool", err)
		}
	}
}

// TestMarkedByTable checks that only models which need a mark get one, and only
// where the conversation is cached.
func TestMarkedByTable(t *testing.T) {
	for _, test := range []struct {
		model, cache string
		want         bool
	}{{"gpt-5.6-sol", "s", true}, {"gpt-5.6-sol", "", false}, {"gpt-5.4", "s", false}, {"somebody's", "s", false}} {
		if got := NewResponses(provider.Config{}).marked(test.model, test.cache); got != test.want {
			t.Errorf("marked(%q, %q) = %v, want %v", test.model, test.cache, got, test.want)
		}
	}
}

// TestEncodingOnlyAppends is the property that prompt caches live from. Only
// Responses has tools in the middle.
func TestEncodingOnlyAppends(t *testing.T) {
	head := func(body string) string { return strings.TrimSuffix(body, "]}") }
	for _, marked := range []bool{false, true} {
		wiretest.AppendOnly(t, true, func(r llm.Request) ([]byte, error) {
			body, _, err := encodeResponses(provider.Config{Model: "m"}, r, marked, 0)
			return body, err
		}, head)
	}
	wiretest.AppendOnly(t, false, func(r llm.Request) ([]byte, error) {
		body, _, err := encodeChat(provider.Config{Model: "m"}, r, 0)
		return body, err
	}, head)
}

// TestSendableNames checks that any name in a history can be sent.
func TestSendableNames(t *testing.T) {
	for in, want := range map[string]string{
		"read_file-2": "read_file-2", "a.b c": "a_b_c", "": "unnamed", "é": "__", strings.Repeat("x", 70): strings.Repeat("x", 64),
	} {
		if got := sendable(in); got != want {
			t.Errorf("sendable(%q) = %q, want %q", in, got, want)
		}
	}
}
