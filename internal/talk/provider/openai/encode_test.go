package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"ken/internal/talk/provider"
	"ken/llm"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the requests in testdata anew")

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
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("encode =\n%swant what %s has (go test -update writes it)", got.Bytes(), file)
			}
		})
	}
}

// TestChatHasNoToolsInTheMiddle checks that the engine learns which rung failed.
func TestChatHasNoToolsInTheMiddle(t *testing.T) {
	inline := llm.Request{Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Tools: []llm.Tool{tool("a")}}}}}}
	search := llm.Request{Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "1", Blocks: []llm.Block{{Tools: []llm.Tool{tool("a")}}}}}}}}}
	for feature, req := range map[string]llm.Request{llm.Inline: inline, llm.Search: search} {
		_, _, err := encodeChat(provider.Config{}, req, 0)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != llm.Unsupported || e.Feature != feature || e.Fix == "" {
			t.Errorf("encodeChat(%s) = %v, want unsupported: %s with a fix", feature, err, feature)
		}
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

// drawBlocks makes blocks of a message. tools says whether some may be tools.
func drawBlocks(t *rapid.T, role llm.Role, n *int, tools bool) []llm.Block {
	text := rapid.OneOf(rapid.StringN(1, 20, -1), rapid.SampledFrom([]string{"\x00\xff", "\"\\\n\u2028", "]}"}))
	var blocks []llm.Block
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		*n++
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			blocks = append(blocks, llm.Block{Text: text.Draw(t, "text")})
		case 2:
			blocks = append(blocks, llm.Block{Image: &llm.Image{MIME: "image/png", Data: []byte(text.Draw(t, "image"))}})
		case 3:
			if role == llm.Assistant {
				blocks = append(blocks, llm.Block{Call: &llm.ToolCall{ID: fmt.Sprint("c", *n), Name: text.Draw(t, "name"), Arguments: []byte(text.Draw(t, "arguments"))}})
			} else {
				r := &llm.ToolResult{ID: fmt.Sprint("c", *n), Name: "f", Failed: rapid.Bool().Draw(t, "failed"), Blocks: []llm.Block{{Text: text.Draw(t, "result")}}}
				if tools && rapid.Bool().Draw(t, "found") {
					r.Blocks = append(r.Blocks, llm.Block{Tools: []llm.Tool{tool("found")}})
				}
				blocks = append(blocks, llm.Block{Result: r})
			}
		case 4:
			blocks = append(blocks, llm.Block{Reasoning: &llm.Reasoning{
				Wire:   rapid.SampledFrom([]string{"openai-chat", "openai-responses", "gemini"}).Draw(t, "wire"),
				Opaque: json.RawMessage(rapid.SampledFrom([]string{`{"type":"reasoning","encrypted_content":"e"}`, `{"reasoning":"r"}`, `null`, ``}).Draw(t, "opaque")),
			}})
		case 5:
			if tools && role == llm.User {
				blocks = append(blocks, llm.Block{Tools: []llm.Tool{tool("inline")}})
			}
		}
	}
	return blocks
}

// TestEncodingOnlyAppends is the property that prompt caches live from: the same
// request is the same bytes, always JSON, and a conversation that has grown
// begins with the bytes that it had.
func TestEncodingOnlyAppends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := llm.Request{Tools: []llm.Tool{tool("f")}, System: rapid.String().Draw(t, "system"), Cache: "s"}
		// The first search declares tool_search; from there on it stays.
		tools := rapid.Bool().Draw(t, "tools")
		n := 0
		if tools {
			req.Messages = searched()
		}
		for range rapid.IntRange(0, 5).Draw(t, "messages") {
			role := rapid.SampledFrom([]llm.Role{llm.User, llm.Assistant}).Draw(t, "role")
			req.Messages = append(req.Messages, llm.Message{Role: role, Blocks: drawBlocks(t, role, &n, tools)})
		}
		marked := rapid.Bool().Draw(t, "marked")
		encoders := map[string]func(llm.Request) ([]byte, omit, error){
			"responses": func(r llm.Request) ([]byte, omit, error) {
				return encodeResponses(provider.Config{Model: "m"}, r, marked, 0)
			},
		}
		if !tools {
			encoders["chat"] = func(r llm.Request) ([]byte, omit, error) { return encodeChat(provider.Config{Model: "m"}, r, 0) }
		}
		for name, encode := range encoders {
			whole, _, err := encode(req)
			if err != nil {
				t.Fatalf("%s: encode = %v", name, err)
			}
			again, _, _ := encode(req)
			if !bytes.Equal(whole, again) {
				t.Fatalf("%s: encode is not the same twice", name)
			}
			if !json.Valid(whole) {
				t.Fatalf("%s: encode = %s, not JSON", name, whole)
			}
			least := 0
			if tools {
				least = len(searched())
			}
			for k := least; k < len(req.Messages); k++ {
				short := req
				short.Messages = req.Messages[:k]
				part, _, err := encode(short)
				if err != nil {
					t.Fatalf("%s: encode of %d messages = %v", name, k, err)
				}
				if part = part[:len(part)-len("]}")]; !bytes.HasPrefix(whole, part) {
					t.Fatalf("%s: encode of %d messages =\n%s\nno prefix of\n%s", name, k, part, whole)
				}
			}
		}
	})
}

// TestStringsAreJSON compares the writer's strings with the library's.
func TestStringsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		var w writer
		w.str(s)
		var got, want string
		std, _ := json.Marshal(s)
		if err := json.Unmarshal(w.b, &got); err != nil {
			t.Fatalf("str(%q) = %s: %v", s, w.b, err)
		}
		if err := json.Unmarshal(std, &want); err != nil || got != want {
			t.Fatalf("str(%q) = %q, want %q", s, got, want)
		}
	})
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

// long is a conversation of n messages as agents have them.
func long(n int) llm.Request {
	req := llm.Request{System: strings.Repeat("You are careful. ", 200), Cache: "s"}
	for i := range 20 {
		req.Tools = append(req.Tools, tool(fmt.Sprint("tool", i)))
	}
	for i := 0; len(req.Messages) < n; i++ {
		id := fmt.Sprint("call_", i)
		req.Messages = append(req.Messages,
			llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Text: "I look at the file."}, {Call: &llm.ToolCall{ID: id, Name: "tool1", Arguments: []byte(`{"p":"src/main.go"}`)}}}},
			llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: id, Name: "tool1", Blocks: []llm.Block{{Text: strings.Repeat("func main() {\n\treturn\n}\n", 80)}}}}}},
		)
	}
	return req
}

func BenchmarkEncode200(b *testing.B) {
	req := long(200)
	for name, encode := range map[string]func() ([]byte, omit, error){
		"chat":      func() ([]byte, omit, error) { return encodeChat(provider.Config{Model: "m"}, req, 0) },
		"responses": func() ([]byte, omit, error) { return encodeResponses(provider.Config{Model: "m"}, req, false, 0) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				body, _, err := encode()
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(body)))
			}
		})
	}
}

func BenchmarkDecode1000(b *testing.B) {
	var chat, responses strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&chat, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word%d\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n", i)
		fmt.Fprintf(&responses, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" word%d\",\"logprobs\":[]}\n\n", i, i)
	}
	chat.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	responses.WriteString("data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n")
	run := func(b *testing.B, decode func() int) {
		b.ReportAllocs()
		for b.Loop() {
			if n := decode(); n != 1002 {
				b.Fatalf("decode = %d chunks, want 1002", n)
			}
		}
	}
	b.Run("chat", func(b *testing.B) {
		run(b, func() (n int) {
			for range decodeChat(strings.NewReader(chat.String()), nil, 0) {
				n++
			}
			return n
		})
	})
	b.Run("responses", func(b *testing.B) {
		run(b, func() (n int) {
			for range decodeResponses(strings.NewReader(responses.String()), nil, 0) {
				n++
			}
			return n
		})
	})
}
