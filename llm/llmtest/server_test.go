package llmtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"ken/llm"
)

// post sends a body as the wire's client would, and gives what came back.
func post(t testing.TB, w Wire, server *Server, body string) (*http.Response, string) {
	t.Helper()
	path := server.wire.path()
	if w == Gemini {
		path += "scripted:streamGenerateContent?alt=sse"
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer k", "X-Api-Key": "k", "X-Goog-Api-Key": "k",
		"Anthropic-Version": "2023-06-01", "Anthropic-Beta": "other-beta," + betaInline,
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil && response.StatusCode != http.StatusOK {
		t.Fatal(err)
	}
	return response, string(data)
}

// requests are a good body for each wire, in which a test replaces a part.
func requests() map[Wire]string {
	return map[Wire]string{
		Chat: `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"messages":[` +
			`{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"ok"}]}`,
		Responses: `{"model":"m","stream":true,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"input":[` +
			`{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c1","output":"ok"}]}`,
		Messages: `{"model":"m","stream":true,"max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","input_schema":{"type":"object"},"defer_loading":true}],"messages":[` +
			`{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok"}]}]}`,
		Gemini: `{"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}}]}],"contents":[` +
			`{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"ok"}}}]}]}`,
	}
}

// TestRefuses changes a good request into one that the vendor does not take.
func TestRefuses(t *testing.T) {
	big := strings.Repeat("n", 200)
	tests := []struct {
		wire          Wire
		from, to, why string // why is in the answer
	}{
		{Chat, `"model":"m"`, `"model":"m","models":["m"]`, "unknown field"},
		{Chat, `"model":"m",`, ``, "Field required"},
		{Chat, `"name":"f","parameters"`, `"name":"f f","parameters"`, "pattern"},
		{Chat, `"name":"f","parameters"`, `"name":"` + big + `","parameters"`, "pattern"},
		{Chat, `{"type":"object"}`, `{"type":"string"}`, "Invalid schema"},
		{Chat, `{"type":"object"}`, `{"type":"object","anyOf":[]}`, "anyOf"},
		{Chat, `,{"role":"tool","tool_call_id":"c1","content":"ok"}`, ``, "c1"},
		{Chat, `"tool_call_id":"c1"`, `"tool_call_id":"c2"`, "c2"},
		{Chat, `{"role":"tool","tool_call_id":"c1","content":"ok"}`, `{"role":"tool","tool_call_id":"c1","content":"ok"},{"role":"tool","tool_call_id":"c1","content":"ok"}`, "no call"},
		{Chat, `{"role":"tool"`, `{"role":"user","content":"wait"},{"role":"tool"`, "c1"},
		{Chat, `"arguments":"{}"`, `"arguments":"{"`, "dictionary"},
		{Chat, `"role":"user"`, `"role":"human"`, "human"},
		{Chat, `"content":"hi"`, `"content":[]`, "empty array"},
		{Chat, `"content":"ok"`, `"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]`, "image_url"},
		{Chat, `"content":"hi"`, `"content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`, "data:"},
		{Chat, `"stream":true`, `"stream":true,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}}`, "not found"},
		{Chat, `"stream":true`, `"stream":false,"stream_options":{"include_usage":true}`, "stream_options"},

		{Responses, `"model":"m"`, `"model":"m","messages":[]`, "unknown field"},
		{Responses, `"name":"f","parameters"`, `"name":"f.f","parameters"`, "pattern"},
		{Responses, `,{"type":"function_call_output","call_id":"c1","output":"ok"}`, ``, "c1"},
		{Responses, `"call_id":"c1","output"`, `"call_id":"c2","output"`, "c2"},
		{Responses, `"call_id":"c1","name"`, `"id":"call_1","call_id":"c1","name"`, "begins with 'fc'"},
		{Responses, `{"type":"function_call",`, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"function_call",`, "verified"},
		{Responses, `{"type":"function_call",`, `{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call",`, "not found"},
		{Responses, `"output":"ok"}`, `"output":"ok"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"` + sign(Responses, "") + `"}`, "required following item"},
		{Responses, `{"role":"user","content":"hi"}`, `{"role":"user","content":"hi"},{"type":"tool_search_call","call_id":"s","arguments":{},"execution":"client"}`, "tool_search"},
		{Responses, `{"role":"user","content":"hi"}`, `{"role":"user","content":"hi"},{"type":"additional_tools","role":"user","tools":[]}`, "developer"},
		{Responses, `"stream":true`, `"stream":true,"max_output_tokens":1`, "16"},

		{Messages, `"model":"m"`, `"model":"m","n":1`, "unknown field"},
		{Messages, `"max_tokens":9,`, ``, "Field required"},
		{Messages, `"name":"f","input_schema"`, `"name":"f/f","input_schema"`, "pattern"},
		{Messages, `"name":"g"`, `"name":"f"`, "unique"},
		{Messages, `"name":"f","input_schema":{"type":"object"}`, `"name":"f","input_schema":{"type":"object"},"defer_loading":true`, "deferred"},
		{Messages, `"defer_loading":true`, `"defer_loading":true,"cache_control":{"type":"ephemeral"}`, "cache_control"},
		{Messages, `"tool_use_id":"c1"`, `"tool_use_id":"c2"`, "c2"},
		{Messages, `{"type":"tool_result"`, `{"type":"text","text":"so"},{"type":"tool_result"`, "before all other"},
		{Messages, `"content":"ok"`, `"content":[{"type":"tool_reference","tool_name":"h"}]`, "not found"},
		{Messages, `"input":{}`, `"input":[]`, "dictionary"},
		{Messages, `"content":"hi"`, `"content":" "`, "non-whitespace"},
		{Messages, `{"type":"tool_use"`, `{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use"`, "signature"},
		{Messages, `[{"role":"user","content":"hi"},`, `[`, "first message"},
		{Messages, `"content":"ok"}]}]`, `"content":"ok"}]},{"role":"assistant","content":"pre"}]`, "prefill"},
		{Messages, `[{"role":"user","content":"hi"}`, `[{"role":"system","content":"hi"}`, "top-level"},
		{Messages, `{"role":"user","content":"hi"},`, `{"role":"user","content":"hi"},{"role":"system","content":"x"},{"role":"user","content":"y"},`, "followed by an assistant"},
		{Messages, `{"role":"user","content":"hi"},`, `{"role":"user","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"g"}}]},`, "not allowed in a user message"},
		{Messages, `"stream":true`, `"stream":true,"thinking":{"type":"enabled","budget_tokens":5}`, "1024"},
		{Messages, `"content":"hi"`, `"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 5), ",") + `]`, "maximum of 4"},

		{Gemini, `"contents":[`, `"content":[],"contents":[`, "unknown field"},
		{Gemini, `{"functionDeclarations":[{"name":"f"`, `{"functionDeclarations":[{"name":"1f"`, "Invalid function name"},
		{Gemini, `"parametersJsonSchema":{"type":"object"}`, `"parameters":{"type":"object","additionalProperties":false}`, "unknown field"},
		{Gemini, `{"functionCall":{"id":"c1","name":"f"`, `{"functionCall":{"id":"c1","name":"h"`, "not declared"},
		{Gemini, `,{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"ok"}}}]}`, ``, "number of function response parts"},
		{Gemini, `{"functionResponse":{"id":"c1"`, `{"functionResponse":{"id":"c2"`, "c2"},
		{Gemini, `[{"role":"user","parts":[{"text":"hi"}]},`, `[`, "start with a user turn"},
		{Gemini, `"parts":[{"text":"hi"}]`, `"parts":[]`, "must not be empty"},
		{Gemini, `{"text":"hi"}`, `{"text":"hi","inlineData":{"mimeType":"image/png","data":"AAAA"}}`, "oneof"},
		{Gemini, `"response":{"output":"ok"}`, `"response":"ok"`, "want an object"},
		{Gemini, `"contents":[`, `"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}},"contents":[`, "mode=ANY"},
		{Gemini, `"contents":[`, `"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["h"]}},"contents":[`, "not declared"},
		{Gemini, `"name":"f","args":{}}}`, `"name":"f","args":{}},"thoughtSignature":"eA=="}`, "thought_signature"},
	}
	for _, test := range tests {
		body := strings.Replace(requests()[test.wire], test.from, test.to, 1)
		if body == requests()[test.wire] {
			t.Errorf("%s: %q is not in the good request", test.wire, test.from)
			continue
		}
		server := Start(test.wire, Always(Reply{Text: "ok"}))
		response, got := post(t, test.wire, server, body)
		server.Close()
		if response.StatusCode/100 != 4 || !strings.Contains(got, test.why) || !json.Valid([]byte(got)) {
			t.Errorf("%s with %s: HTTP %d %s, want a refusal that says %q", test.wire, test.to, response.StatusCode, got, test.why)
		}
		if seen := server.Requests(); len(seen) != 1 || seen[0].Refused == "" {
			t.Errorf("%s with %s: seen %+v, want one that was refused", test.wire, test.to, seen)
		}
	}
}

// TestTakes shows that the requests which TestRefuses breaks are good, and how
// they are read.
func TestTakes(t *testing.T) {
	want := []llm.Message{
		said("hi"),
		{Role: llm.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "c1", Name: "f", Arguments: []byte("{}")}}}},
		{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "c1", Name: "f", Blocks: []llm.Block{{Text: "ok"}}}}}},
	}
	for _, w := range Wires() {
		server := Serve(t, w, Replies(Reply{Text: "fine"}))
		response, got := post(t, w, server, requests()[w])
		if response.StatusCode != http.StatusOK || !strings.Contains(got, "data: ") {
			t.Errorf("%s: HTTP %d %s, want an answer", w, response.StatusCode, got)
			continue
		}
		req := server.Requests()[0].Request
		if !reflect.DeepEqual(req.Messages, want) {
			t.Errorf("%s: the request was read as %s, want %s", w, show(req.Messages), show(want))
		}
		if len(req.Tools) != 1 || req.Tools[0].Name != "f" {
			t.Errorf("%s: tools = %s, want f alone", w, show(req.Tools))
		}
		response, got = post(t, w, server, requests()[w])
		if response.StatusCode != http.StatusInternalServerError || !strings.Contains(got, "the script is over") {
			t.Errorf("%s: a request too many: HTTP %d %s, want 500 that says so", w, response.StatusCode, got)
		}
	}
}

// TestWant checks wants, in plain and in quoted text.
func TestWant(t *testing.T) {
	for _, w := range Wires() {
		server := Start(w, Replies(Reply{Text: "a", Want: []string{"hi", "\"role\""}}, Reply{Text: "b", Want: []string{"hi", "there is no such"}}))
		if response, got := post(t, w, server, requests()[w]); response.StatusCode != http.StatusOK {
			t.Errorf("%s: HTTP %d %s, want an answer", w, response.StatusCode, got)
		}
		response, got := post(t, w, server, requests()[w])
		if response.StatusCode != http.StatusInternalServerError || !strings.Contains(got, "there is no such") {
			t.Errorf("%s: HTTP %d %s, want 500 that says what is missing", w, response.StatusCode, got)
		}
		if list := server.Problems(); len(list) != 1 || !strings.Contains(list[0], "request 2 lacks") {
			t.Errorf("%s: Problems() = %q, want the second request", w, list)
		}
		server.Close()
		server.Close()
	}
}

func TestReadReplies(t *testing.T) {
	in := `# a script
{"text": "hello", "thought": "hm", "fragments": 2, "want": ["a", "b"]}

{"calls": [{"id": "1", "name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": "{not json"}, {"name": "h"}],
 "usage": {"input": 5, "output": 2}, "stop": "calls"}
{"fault": "rate", "retryAfter": "20ms"}
`
	want := []Reply{
		{Text: "hello", Thought: "hm", Fragments: 2, Want: []string{"a", "b"}},
		{Calls: []llm.ToolCall{{ID: "1", Name: "f", Arguments: []byte(`{"a": 1}`)}, {Name: "g", Arguments: []byte(`{not json`)}, {Name: "h", Arguments: []byte(`{}`)}},
			Usage: llm.Usage{Input: 5, Output: 2}, Stop: llm.StopCalls},
		{Fault: Rate, RetryAfter: 20 * time.Millisecond},
	}
	got, err := ReadReplies(strings.NewReader(in))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadReplies() = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{
		`{"txt": "a"}`, `{"fault": "fire"}`, `{"stop": "now"}`, `{"retryAfter": "soon"}`, `{"calls": [{"id": "1"}]}`,
		`{"fragments": -1}`, `{"text": 1}`, `{"text": "a"`, `[]`, `{"calls": [{"name": "f", "args": {}}]}`, `{"usage": {"in": 1}}`,
	} {
		if got, err := ReadReplies(strings.NewReader("{}\n" + bad)); err == nil || !strings.Contains(err.Error(), "reply 2") {
			t.Errorf("ReadReplies(%s) = %+v, %v, want an error that names the second reply", bad, got, err)
		}
	}
}

func TestFragments(t *testing.T) {
	for _, text := range []string{"", "a", "abc", "äöü", "😀😀", strings.Repeat("天気", 50)} {
		for n := range 12 {
			list := fragments(text, n)
			if strings.Join(list, "") != text || len(list) > max(n, 1) {
				t.Errorf("fragments(%q, %d) = %q", text, n, list)
			}
			for _, piece := range list {
				if !json.Valid([]byte(compact(piece))) || strings.Contains(compact(piece), `\ufffd`) || piece == "" {
					t.Errorf("fragments(%q, %d) cuts a rune: %q", text, n, piece)
				}
			}
		}
	}
}

// FuzzRead sends any bytes to all servers: they answer, and never with a crash.
func FuzzRead(f *testing.F) {
	for _, body := range requests() {
		f.Add([]byte(body))
	}
	servers := map[Wire]*Server{}
	for _, w := range Wires() {
		servers[w] = Start(w, Always(Reply{Text: "ok"}))
		f.Cleanup(servers[w].Close)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for w, server := range servers {
			in := &incoming{server: server, method: http.MethodPost}
			in.Header, in.Body, in.Path = http.Header{}, bytes.Clone(body), "/v1"+server.wire.path()
			switch w {
			case Gemini:
				in.Path = "/v1beta/models/m:streamGenerateContent?alt=sse"
			case Messages:
				in.Path = "/v1/messages"
			}
			for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
				in.Header.Set(name, "Bearer k")
			}
			in.Header.Set("Content-Type", "application/json")
			in.Header.Set("Anthropic-Version", "2023-06-01")
			if refused := in.understand(); refused == nil && len(in.Request.Messages) == 0 {
				t.Errorf("%s takes %q, which has no message", w, body)
			} else if refused != nil && (refused.status/100 != 4 || refused.message == "") {
				t.Errorf("%s refuses %q with %+v", w, body, refused)
			}
		}
	})
}

// Programs that are not Ken send what this package does not read, such as groups of
// tools. The script is asked all the same, and a call names the group of its tool.
func TestServeOthers(t *testing.T) {
	server := ServeOthers(t, Responses, Always(Reply{Calls: []llm.ToolCall{{Name: "look", Arguments: []byte("{}")}}}))
	body := `{"model":"m","input":"Hello","stream":true,"client_metadata":{},"tools":[{"type":"namespace","name":"mcp__ken","tools":[{"type":"function","name":"look"}]}]}`
	if res, text := post(t, Responses, server, body); res.StatusCode != http.StatusOK || !strings.Contains(text, `"namespace":"mcp__ken"`) {
		t.Errorf("the answer is %d %s, want a call in the namespace", res.StatusCode, text)
	}
	if res, text := post(t, Responses, server, body[1:]); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that is not JSON is answered with %d %s, want 400", res.StatusCode, text)
	}
	seen := server.Requests()
	if len(seen) != 2 || seen[0].Unread == "" || seen[0].Refused != "" || seen[1].Refused == "" {
		t.Errorf("the requests were seen as %+v, want one that was not read and one that was refused", seen)
	}
}
