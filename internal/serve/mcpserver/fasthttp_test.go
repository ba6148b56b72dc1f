package mcpserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"ken/capability"
)

// said2026 is what a client says of itself with each request.
const said2026 = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

// TestCallsPastTheSDK: a call over HTTP that is served past the SDK is answered as
// the SDK answers it. The SDK gets the same request with another form of the header
// Accept.
func TestCallsPastTheSDK(t *testing.T) {
	b := newBench(t, office)
	h := web(t, New(b.config()))
	call := func(name, arguments string) string {
		return `{"jsonrpc":"2.0","id":"a\u00e9","method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + `,` + said2026 + `}}`
	}
	greetBob := call("invoke_capability", `{"capability":"tool:greet","arguments":{"name":"Bob"}}`)
	plain := map[string]string{headerVersion: sessionless, "Mcp-Method": "tools/call", "Mcp-Name": "invoke_capability"}
	with := func(key, value string) map[string]string {
		out := map[string]string{key: value}
		for k, v := range plain {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	for _, tt := range []struct {
		name, body string
		header     map[string]string
		status     int
	}{
		{"call", greetBob, plain, 200},
		{"wrong arguments", call("invoke_capability", `{"capability":"tool:greet","arguments":{"name":1}}`), plain, 200},
		{"question", call("invoke_capability", `{"capability":"tool:write","arguments":{"name":"Bob"}}`), plain, 200},
		{"search", call("discover_capabilities", `{"query":"greet somebody"}`), with("Mcp-Name", "discover_capabilities"), 200},
		{"an argument twice", strings.Replace(greetBob, `"name":"Bob"`, `"name":"Bob","name":"Eve"`, 1), plain, 400},
		{"a long answer", call("invoke_capability", `{"capability":"tool:greet","arguments":{"name":"`+strings.Repeat("Bob ", 2000)+`"}}`), plain, 200},
		{"unknown tool", call("nothing", `{}`), with("Mcp-Name", "nothing"), 400},
		{"no arguments", strings.Replace(greetBob, `"arguments":{"capability":"tool:greet","arguments":{"name":"Bob"}},`, "", 1), plain, 200},
		{"another name in the header", greetBob, with("Mcp-Name", "discover_capabilities"), 400},
		{"no name in the header", greetBob, with("Mcp-Name", ""), 400},
		{"another method in the header", greetBob, with("Mcp-Method", "tools/list"), 400},
		{"another version in the header", greetBob, with(headerVersion, "2026-07-29"), 400},
		{"unknown version", strings.Replace(greetBob, "2026-07-28", "2027-01-01", 1), with(headerVersion, "2027-01-01"), 400},
		{"no capabilities", strings.Replace(greetBob, "clientCapabilities", "other", 1), plain, 400},
		{"wrong capabilities", strings.Replace(greetBob, `{"form":{}}`, `7`, 1), plain, 400},
		{"wrong client", strings.Replace(greetBob, `"version":"1"`, `"version":1`, 1), plain, 400},
		{"no client", strings.Replace(greetBob, `"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`, "", 1), plain, 200},
		{"progress", strings.Replace(greetBob, `"_meta":{`, `"_meta":{"progressToken":"p",`, 1), plain, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			type reply struct {
				status  int
				kind    string
				message any
			}
			ask := func(header map[string]string) reply {
				res := post(t, h.URL, tt.body, header)
				text, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				out := reply{status: res.StatusCode, kind: res.Header.Get("Content-Type")}
				if _, data, ok := strings.Cut(string(text), "data: "); ok {
					text = []byte(data)
				}
				if json.Unmarshal(text, &out.message) != nil {
					out.message = string(text)
				}
				return out
			}
			bySDK := map[string]string{"Accept": "application/json;q=1, text/event-stream"}
			for k, v := range tt.header {
				bySDK[k] = v
			}
			ours, theirs := ask(tt.header), ask(bySDK)
			ours.message, theirs.message = withoutState(ours.message), withoutState(theirs.message)
			if ours.status != tt.status || !reflect.DeepEqual(ours, theirs) {
				t.Errorf("past the SDK: %+v\nby the SDK:   %+v\nwant status %d", ours, theirs, tt.status)
			}
		})
	}
}

// withoutState removes what differs between two requests: the sealed state of a
// question, which has a time in it, and the ticket.
func withoutState(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "requestState")
		for k := range v {
			v[k] = withoutState(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutState(v[i])
		}
	}
	return v
}

// TestPlainCallsTakeTheFastWay: what usual clients send is served past the SDK, and
// what could need more of the protocol is not.
func TestPlainCallsTakeTheFastWay(t *testing.T) {
	b := newBench(t, office)
	s := New(b.config())
	a := s.audience(capability.Principal{ID: "ada"})
	a.web.Do(a.open)
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"invoke_capability","arguments":{"capability":"tool:greet","arguments":{"name":"Bob"}},` + said2026 + `}}`
	usual := map[string]string{
		"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
		headerVersion: sessionless, "Mcp-Method": "tools/call", "Mcp-Name": "invoke_capability",
	}
	for _, tt := range []struct {
		name, body, key, value string
		fast                   bool
	}{
		{"plain", body, "", "", true},
		{"again", body, "", "", true},
		{"progress", strings.Replace(body, `"_meta":{`, `"_meta":{"progressToken":1,`, 1), "", "", false},
		{"log lines", strings.Replace(body, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"info",`, 1), "", "", false},
		{"answers", strings.Replace(body, `"arguments":{`, `"inputResponses":{},"arguments":{`, 1), "", "", false},
		{"notification", strings.Replace(body, `"id":7,`, ``, 1), "", "", false},
		{"batch", `[` + body + `]`, "", "", false},
		{"arguments in headers", body, "Mcp-Param-Region", "eu", false},
		{"session", body, headerSession, "s", false},
		{"only JSON", body, "Accept", "application/json", false},
		{"another type", body, "Content-Type", "text/plain", false},
		{"a stream that broke", body, "Last-Event-Id", "1", false},
		{"an argument twice", strings.Replace(body, `{"name":"Bob"}`, `{"name":"Bob","name":"Eve"}`, 1), "", "", false},
		{"a member of _meta twice", strings.Replace(body, `"_meta":{`, `"_meta":{"a":{"b":1,"b":2},`, 1), "", "", false},
		{"not JSON", body + `]`, "", "", false},
		{"too deep", strings.Replace(body, `"Bob"`, strings.Repeat("[", 1000)+strings.Repeat("]", 1000), 1), "", "", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(tt.body))
		for k, v := range usual {
			r.Header.Set(k, v)
		}
		if tt.key != "" {
			r.Header.Set(tt.key, tt.value)
		}
		w := httptest.NewRecorder()
		if got := a.stateless.serveCall(w, r, []byte(tt.body)); got != tt.fast || got != (w.Body.Len() > 0) {
			t.Errorf("%s: served past the SDK: %t, %s", tt.name, got, w.Body)
		}
	}
}

// TestLongAnswerHasItsLength: a client can tell a long answer that broke off, and it
// is not sent in chunks.
func TestLongAnswerHasItsLength(t *testing.T) {
	h := web(t, New(newBench(t, office).config()))
	for _, n := range []int{1, 4000, 100_000} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"invoke_capability","arguments":{"capability":"tool:greet","arguments":{"name":"` + strings.Repeat("x", n) + `"}},` + said2026 + `}}`
		res := post(t, h.URL, body, map[string]string{headerVersion: sessionless, "Mcp-Method": "tools/call", "Mcp-Name": "invoke_capability"})
		text, err := io.ReadAll(res.Body)
		if err != nil || res.ContentLength != int64(len(text)) || !strings.HasPrefix(string(text), "event: message\ndata: {") || !strings.HasSuffix(string(text), "}\n\n") {
			t.Errorf("an answer about %d bytes: %v, Content-Length %d of %d: %.80s", n, err, res.ContentLength, len(text), text)
		}
	}
}

// TestAnswerSaysWhichServerItIsFrom: it is Ken, and what the tool's server said of itself
// is left out; the rest of its metadata stays.
func TestAnswerSaysWhichServerItIsFrom(t *testing.T) {
	who := New(newBench(t, office).config()).audience(ada)
	who.web.Do(who.open)
	for meta, want := range map[string]string{
		"": "", `{"io.modelcontextprotocol/serverInfo":{"name":"other"}}`: "", `{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"other"}}`: `"a":1,`,
	} {
		a := said(true, "hello\n", false)
		a.pass(meta)
		got := string(who.stateless.message(nil, json.RawMessage(`7`), true, a, nil))
		if want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"hello\n"}],"_meta":{` + want + `"io.modelcontextprotocol/serverInfo":{"name":"ken","version":"1"}}}}`; got != want {
			t.Errorf("with metadata %s:\n%s, want\n%s", meta, got, want)
		}
	}
}
