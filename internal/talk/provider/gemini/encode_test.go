package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"ken/internal/testkit/wiretest"
	"ken/llm"
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

var user, assistant, text, call = wiretest.User, wiretest.Assistant, wiretest.Text, wiretest.Call

func result(id, name, out string) llm.Block { return wiretest.Result(id, name, text(out)) }

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
	for _, tt := range []struct {
		name    string
		req     llm.Request
		kind    llm.Kind
		feature string
	}{
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

// TestAppendOnly: what was sent once is sent again in the same bytes, and only
// what is new comes after it.
func TestAppendOnly(t *testing.T) {
	for _, tr := range []traits{newest, {}} {
		wiretest.AppendOnly(t, false, func(r llm.Request) ([]byte, error) { return encode(r, tr) }, func(body string) string {
			messages, _, _ := strings.Cut(body, `],"toolConfig"`)
			return messages
		})
	}
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
