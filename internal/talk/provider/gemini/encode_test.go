package gemini

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"ken/llm"

	"pgregory.net/rapid"
)

var newest = traits{thinks: true, levels: true, signed: true, media: true}

func mustEncode(t testing.TB, req llm.Request, tr traits) string {
	t.Helper()
	body, err := encode(req, tr)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(body) {
		t.Fatalf("encode gave no JSON: %s", body)
	}
	return string(body)
}

func user(blocks ...llm.Block) llm.Message { return llm.Message{Role: llm.User, Blocks: blocks} }

func assistant(blocks ...llm.Block) llm.Message {
	return llm.Message{Role: llm.Assistant, Blocks: blocks}
}

func text(s string) llm.Block { return llm.Block{Text: s} }

func call(id, name, args, opaque string) llm.Block {
	return llm.Block{Call: &llm.ToolCall{ID: id, Name: name, Arguments: []byte(args), Opaque: json.RawMessage(opaque)}}
}

func result(id, name, out string) llm.Block {
	return llm.Block{Result: &llm.ToolResult{ID: id, Name: name, Blocks: []llm.Block{text(out)}}}
}

func reasoning(wire, opaque string) llm.Block {
	return llm.Block{Reasoning: &llm.Reasoning{Wire: wire, Opaque: json.RawMessage(opaque)}}
}

func TestEncodeMessages(t *testing.T) {
	picture := llm.Block{Image: &llm.Image{MIME: "image/png", Data: []byte("px")}}
	shown := llm.Block{Result: &llm.ToolResult{ID: "a", Name: "see", Blocks: []llm.Block{text("one"), picture, text("two")}}}
	for _, tt := range []struct {
		name     string
		traits   traits
		messages []llm.Message
		want     string // of contents
	}{
		{
			"texts and an image", newest,
			[]llm.Message{user(text("a \"<b>\"\n"), picture), assistant(text("c"))},
			`{"role":"user","parts":[{"text":"a \"<b>\"\n"},{"inlineData":{"mimeType":"image/png","data":"cHg="}}]},{"role":"model","parts":[{"text":"c"}]}`,
		},
		{
			"a call with its id and signature", newest,
			[]llm.Message{assistant(call("a", "f", `{"x":1}`, `{"thoughtSignature":"c2ln"}`)), user(result("a", "f", "out"))},
			`{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"c2ln"}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"out"}}}]}`,
		},
		{
			"ids of ours are not sent", newest,
			[]llm.Message{assistant(call("gemini-call-1", "f", `{}`, `{"thoughtSignature":"s"}`)), user(result("gemini-call-1", "", "out"))},
			`{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"out"}}}]}`,
		},
		{
			"another vendor's calls have no signature", newest,
			[]llm.Message{assistant(call("toolu_1", "f", `{}`, `{"other":1}`), call("toolu_2", "f", `{}`, ""))},
			`{"role":"model","parts":[{"functionCall":{"id":"toolu_1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},` +
				`{"functionCall":{"id":"toolu_2","name":"f","args":{}}}]}`,
		},
		{
			"where none is needed none is made up", traits{},
			[]llm.Message{assistant(call("toolu_1", "f", `{}`, ""))},
			`{"role":"model","parts":[{"functionCall":{"id":"toolu_1","name":"f","args":{}}}]}`,
		},
		{
			"results come in the order of the calls", newest,
			[]llm.Message{
				assistant(call("a", "f", `{}`, `{"thoughtSignature":"s"}`), call("b", "f", `{}`, "")),
				user(text("and?"), result("z", "g", "3"), result("b", "f", "2"), result("a", "f", "1")),
			},
			`{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"s"},{"functionCall":{"id":"b","name":"f","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}},{"functionResponse":{"id":"b","name":"f","response":{"output":"2"}}},` +
				`{"functionResponse":{"id":"z","name":"g","response":{"output":"3"}}},{"text":"and?"}]}`,
		},
		{
			"a result that failed", newest,
			[]llm.Message{user(llm.Block{Result: &llm.ToolResult{ID: "a", Name: "f", Failed: true, Blocks: []llm.Block{text("no")}}})},
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"error":"no"}}}]}`,
		},
		{
			"images in a result", newest,
			[]llm.Message{user(shown)},
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"see","response":{"output":"one\ntwo"},"parts":[{"inlineData":{"mimeType":"image/png","data":"cHg="}}]}}]}`,
		},
		{
			"images beside a result", traits{},
			[]llm.Message{user(shown)},
			`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"see","response":{"output":"one\ntwo"}}},{"inlineData":{"mimeType":"image/png","data":"cHg="}}]}`,
		},
		{
			"arguments that are no object", traits{},
			[]llm.Message{assistant(call("a", "f", ``, ""), call("b", "f", `{"x":`, ""), call("c", "f", `[1]`, ""), call("d", "f", "{\"\xff\":1}", ""))},
			`{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}},{"functionCall":{"id":"b","name":"f","args":{"raw":"{\"x\":"}}},` +
				`{"functionCall":{"id":"c","name":"f","args":{"raw":"[1]"}}},{"functionCall":{"id":"d","name":"f","args":{"raw":"{\"\ufffd\":1}"}}}]}`,
		},
		{
			"thoughts go back as they came", newest,
			[]llm.Message{assistant(reasoning("gemini", `{"text":"hm","thought":true,"thoughtSignature":"s"}`), text("x"))},
			`{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"s"},{"text":"x"}]}`,
		},
		{
			"a signature goes back on its text", newest,
			[]llm.Message{assistant(text("a"), text("b"), reasoning("gemini", `{"thoughtSignature":"s"}`), reasoning("gemini", `{"text":"","thoughtSignature":"e"}`))},
			`{"role":"model","parts":[{"text":"a"},{"text":"b","thoughtSignature":"s"},{"text":"","thoughtSignature":"e"}]}`,
		},
		{
			"thoughts of others stay away, and so does a message without any", newest,
			[]llm.Message{user(text("a")), assistant(reasoning("anthropic", `{"type":"thinking"}`)), assistant(reasoning("gemini", `no`)), user(text("b"))},
			`{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"}]}`,
		},
		{
			"calls of tools that are not declared are told in words", traits{},
			[]llm.Message{
				assistant(call("a", "gone", `{"x":1}`, `{"thoughtSignature":"s"}`), call("b", "f", `{}`, "")),
				user(result("b", "f", "out"), llm.Block{Result: &llm.ToolResult{ID: "a", Failed: true, Blocks: []llm.Block{text("no"), picture}}}),
			},
			`{"role":"model","parts":[{"text":"[called gone with {\"x\":1}]"},{"functionCall":{"id":"b","name":"f","args":{}}}]},` +
				`{"role":"user","parts":[{"text":"[gone failed: no]"},{"inlineData":{"mimeType":"image/png","data":"cHg="}},{"functionResponse":{"id":"b","name":"f","response":{"output":"out"}}}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tools := []llm.Tool{{Name: "f"}, {Name: "g"}, {Name: "see"}}
			body := mustEncode(t, llm.Request{Tools: tools, Messages: tt.messages}, tt.traits)
			_, got, _ := strings.Cut(body, `"contents":[`)
			if !strings.HasPrefix(got, tt.want+"]") {
				t.Errorf("encode gave\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestS307AllowedFunctionNames shows that governance changes no byte of what
// the model sees of its tools (S3.07, S3.29).
func TestS307AllowedFunctionNames(t *testing.T) {
	req := llm.Request{
		Tools:    []llm.Tool{{Name: "a"}, {Name: "b"}, {Name: "select_active_intent"}},
		Messages: []llm.Message{user(text("x"))},
	}
	all := mustEncode(t, req, newest)
	prefix, _, _ := strings.Cut(all, `,"toolConfig"`)
	for _, tt := range []struct {
		allowed []string
		want    string
	}{
		{nil, `{"mode":"AUTO"}`},
		{[]string{"select_active_intent", "a"}, `{"mode":"VALIDATED","allowedFunctionNames":["a","select_active_intent"]}`},
		{[]string{"b", "gone"}, `{"mode":"VALIDATED","allowedFunctionNames":["b"]}`},
		{[]string{}, `{"mode":"NONE"}`},
		{[]string{"gone"}, `{"mode":"NONE"}`},
	} {
		req.Allowed = tt.allowed
		got := mustEncode(t, req, newest)
		if !strings.HasPrefix(got, prefix) || !strings.Contains(got, `"functionCallingConfig":`+tt.want) {
			t.Errorf("encode with %q allowed = %s, want %s and all else unchanged", tt.allowed, got, tt.want)
		}
	}
	req.Tools = nil
	if got := mustEncode(t, req, newest); strings.Contains(got, "toolConfig") {
		t.Errorf("encode without tools = %s, want no toolConfig", got)
	}
}

func TestEncodeAround(t *testing.T) {
	req := llm.Request{
		Tools:     []llm.Tool{{Name: "f", Description: "does", Schema: json.RawMessage(` {"type":"object","$defs":{"x":{"oneOf":[]}}}`)}, {Name: "g", Schema: json.RawMessage("null")}},
		System:    "be kind",
		MaxTokens: 77,
		Effort:    "low",
	}
	want := `{"tools":[{"functionDeclarations":[{"name":"f","description":"does","parametersJsonSchema":{"type":"object","$defs":{"x":{"oneOf":[]}}}},{"name":"g","description":""}]}],` +
		`"systemInstruction":{"parts":[{"text":"be kind"}]},"contents":[],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},` +
		`"generationConfig":{"maxOutputTokens":77,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}}`
	if got := mustEncode(t, req, newest); got != want {
		t.Errorf("encode gave\n%s\nwant\n%s", got, want)
	}
	if got := mustEncode(t, req, traits{thinks: true}); !strings.Contains(got, `{"includeThoughts":true,"thinkingBudget":1024}`) {
		t.Errorf("encode for a model of budgets gave %s", got)
	}
	if got := mustEncode(t, req, traits{levels: true}); strings.Contains(got, "thinking") {
		t.Errorf("encode for a model that does not think gave %s", got)
	}
}

func TestEncodeRefuses(t *testing.T) {
	tools := []llm.Tool{{Name: "f"}}
	for _, tt := range []struct {
		name    string
		req     llm.Request
		kind    llm.Kind
		feature string
	}{
		{"tools in a message", llm.Request{Messages: []llm.Message{user(llm.Block{Tools: tools})}}, llm.Unsupported, llm.Inline},
		{"tools in a result", llm.Request{Messages: []llm.Message{user(llm.Block{Result: &llm.ToolResult{Blocks: []llm.Block{{Tools: tools}}}})}}, llm.Unsupported, llm.Search},
		{"a broken schema", llm.Request{Tools: []llm.Tool{{Name: "f", Schema: json.RawMessage(`{`)}}}, llm.Invalid, ""},
		{"a schema that is none", llm.Request{Tools: []llm.Tool{{Name: "f", Schema: json.RawMessage(`true`)}}}, llm.Invalid, ""},
		{"an unknown effort", llm.Request{Effort: "utmost"}, llm.Invalid, ""},
	} {
		_, err := encode(tt.req, newest)
		e, ok := err.(*llm.Error)
		if !ok || e.Kind != tt.kind || e.Feature != tt.feature || e.Fix == "" {
			t.Errorf("%s: encode gave the error %v, want %v %s with a fix", tt.name, err, tt.kind, tt.feature)
		}
	}
}

func drawBlock(t *rapid.T, role llm.Role) llm.Block {
	words := rapid.StringN(0, 20, -1)
	kinds := []string{"text", "image"}
	if role == llm.Assistant {
		kinds = append(kinds, "call", "thought", "signature", "foreign")
	} else {
		kinds = append(kinds, "result")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "image":
		return llm.Block{Image: &llm.Image{MIME: "image/png", Data: []byte(words.Draw(t, "data"))}}
	case "call":
		return call(words.Draw(t, "id"), "f", rapid.SampledFrom([]string{"", "{}", `{"a":[1]}`, "{", "7"}).Draw(t, "args"), rapid.SampledFrom([]string{"", `{"thoughtSignature":"s"}`, "x"}).Draw(t, "opaque"))
	case "thought":
		return reasoning(wire, `{"text":"t","thought":true}`)
	case "signature":
		return reasoning(wire, `{"thoughtSignature":"s"}`)
	case "foreign":
		return reasoning("anthropic", `{}`)
	case "result":
		return result(words.Draw(t, "id"), "f", words.Draw(t, "out"))
	}
	return text(words.Draw(t, "text"))
}

// What was sent once is sent again in the same bytes, and only what is new
// comes after it.
func TestAppendOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := llm.Request{System: "s", Tools: []llm.Tool{{Name: "f"}}}
		tr := rapid.SampledFrom([]traits{newest, {}}).Draw(t, "traits")
		before := ""
		for i := range rapid.IntRange(1, 6).Draw(t, "messages") {
			m := llm.Message{Role: []llm.Role{llm.User, llm.Assistant}[i%2]}
			for range rapid.IntRange(0, 4).Draw(t, "blocks") {
				m.Blocks = append(m.Blocks, drawBlock(t, m.Role))
			}
			req.Messages = append(req.Messages, m)
			one, err := encode(req, tr)
			two, _ := encode(req, tr)
			if err != nil || !bytes.Equal(one, two) || !json.Valid(one) {
				t.Fatalf("encode twice gave\n%s\n%s\n%v", one, two, err)
			}
			now, _, _ := strings.Cut(string(one), `],"toolConfig"`)
			if !strings.HasPrefix(now, before) {
				t.Fatalf("encode of %d messages\n%s\nis not the start of that of one more\n%s", i, before, now)
			}
			before = now
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\"\\\n\r\t\u2028\xff\xc3\x28")
	f.Fuzz(func(t *testing.T, s string) {
		var w writer
		w.text(s)
		var got string
		if err := json.Unmarshal(w.b, &got); err != nil {
			t.Fatalf("text(%q) = %s: %v", s, w.b, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); strings.ToValidUTF8(got, "\uFFFD") != got || strings.ReplaceAll(got, "\uFFFD", "") != strings.ReplaceAll(want, "\uFFFD", "") {
			t.Fatalf("text(%q) reads as %q", s, got)
		}
	})
}

// long is a conversation of 200 messages with calls and results.
func long() llm.Request {
	req := llm.Request{System: strings.Repeat("You are careful. ", 200)}
	for i := range 20 {
		req.Tools = append(req.Tools, llm.Tool{Name: "tool_" + strconv.Itoa(i), Description: "does something", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	for i := range 50 {
		id := "call" + strconv.Itoa(i)
		req.Messages = append(req.Messages,
			user(text(strings.Repeat("What is in this file? ", 10))),
			assistant(reasoning(wire, `{"text":"I should look.","thought":true}`), text("I look."), call(id, "tool_1", `{"path":"a/b/c.go"}`, `{"thoughtSignature":"c2lnbmF0dXJl"}`)),
			user(result(id, "tool_1", strings.Repeat("line of a file\n", 40))),
			assistant(text(strings.Repeat("It says this. ", 20))))
	}
	return req
}

func BenchmarkEncode200(b *testing.B) {
	req := long()
	b.ReportAllocs()
	for b.Loop() {
		body, err := encode(req, newest)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}
