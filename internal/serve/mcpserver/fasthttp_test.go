package mcpserver

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
)

// said2026 is what a client says of itself with each request.
const said2026 = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

// TestCallsPastTheSDK: a call over HTTP that is served past the SDK is answered as
// the SDK answers it, with a session, in each version that has them, and without.
func TestCallsPastTheSDK(t *testing.T) {
	h := web(t, New(newBench(t, office).config()))
	const toGreet = `{"capability":"tool:greet","arguments":{"name":"Bob"}}`
	for _, version := range mcp.SupportedProtocolVersions() {
		if version >= sessionless {
			continue
		}
		v := begin(t, h, version, "{}")
		greetBob := toolCall("7", "invoke_capability", toGreet, "")
		for name, body := range map[string]string{
			"call":                 greetBob,
			"an id of letters":     toolCall(`"a\u00e9"`, "invoke_capability", toGreet, ""),
			"wrong arguments":      toolCall("7", "invoke_capability", `{"capability":"tool:greet","arguments":{"name":1}}`, ""),
			"question":             toolCall("7", "invoke_capability", `{"capability":"tool:write","arguments":{"name":"Bob"}}`, ""),
			"search":               toolCall("7", "discover_capabilities", `{"query":"greet somebody"}`, ""),
			"unknown tool":         toolCall("7", "nothing", `{}`, ""),
			"no arguments":         `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"invoke_capability"}}`,
			"a long answer":        toolCall("7", "invoke_capability", strings.Replace(toGreet, "Bob", strings.Repeat("Bob ", 2000), 1), ""),
			"progress":             toolCall("7", "invoke_capability", toGreet, `,"_meta":{"progressToken":"p"}`),
			"an argument twice":    strings.Replace(greetBob, `"name":"Bob"`, `"name":"Bob","name":"Eve"`, 1),
			"a batch":              `[` + greetBob + `]`,
			"another version":      toolCall("7", "invoke_capability", toGreet, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`),
			"metadata of its own":  toolCall("7", "invoke_capability", toGreet, `,"_meta":{"example.com/a":[1,2]}`),
			"metadata not of JSON": strings.Replace(greetBob, `"name":"invoke_capability"`, `"name":"invoke_capability","_meta":7`, 1),
		} {
			sameAsSDK(t, h, version+"/"+name, body, v.header, 0)
		}
	}

	call := func(name, arguments string) string {
		return toolCall(`"a\u00e9"`, name, arguments, ","+said2026)
	}
	greetBob := call("invoke_capability", toGreet)
	plain := map[string]string{headerVersion: sessionless, "Mcp-Method": "tools/call", "Mcp-Name": "invoke_capability"}
	with := func(key, value string) map[string]string {
		out := maps.Clone(plain)
		out[key] = value
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
		{"a member of _meta twice", strings.Replace(greetBob, `"_meta":{`, `"_meta":{"a":{"b":1,"b":2},`, 1), plain, 400},
		{"too deep", strings.Replace(greetBob, `"Bob"`, strings.Repeat("[", 1000)+strings.Repeat("]", 1000), 1), plain, 400},
		{"a long answer", call("invoke_capability", strings.Replace(toGreet, "Bob", strings.Repeat("Bob ", 2000), 1)), plain, 200},
		{"unknown tool", call("nothing", `{}`), with("Mcp-Name", "nothing"), 400},
		{"no arguments", strings.Replace(greetBob, `"arguments":`+toGreet+`,`, "", 1), plain, 200},
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
		sameAsSDK(t, h, tt.name, tt.body, tt.header, tt.status)
	}
}

// sameAsSDK compares how a request is answered with how the SDK answers it, which
// gets it with another form of the header Accept. status 0 is any.
func sameAsSDK(t *testing.T, h *httptest.Server, name, body string, header map[string]string, status int) {
	t.Helper()
	ask := func(more map[string]string) (int, string) {
		all := maps.Clone(header)
		maps.Copy(all, more)
		res := post(t, h.URL, body, all)
		text := testkit.Must(io.ReadAll(res.Body))(t)
		if _, data, ok := strings.Cut(string(text), "data: {"); ok {
			text = []byte("{" + data)
		}
		var message any
		if json.Unmarshal(text, &message) != nil {
			message = string(text)
		}
		// The sealed state of a question has a time in it, and each question a ticket.
		said := regexp.MustCompile(`requestState:\S+|ken approve grant \S+`).ReplaceAllString(fmt.Sprint(message), "")
		return res.StatusCode, res.Header.Get("Content-Type") + " " + said
	}
	code, ours := ask(nil)
	if by, theirs := ask(map[string]string{"Accept": "application/json;q=1, text/event-stream"}); code != by || ours != theirs || status != 0 && code != status {
		t.Errorf("%s: past the SDK: %d %s\nby the SDK:   %d %s\nwant status %d", name, code, ours, by, theirs, status)
	}
}

// TestLongAnswerHasItsLength: a client can tell a long answer that broke off, and it
// is not sent in chunks.
func TestLongAnswerHasItsLength(t *testing.T) {
	h := web(t, New(newBench(t, office).config()))
	for _, n := range []int{1, 4000, 100_000} {
		body := toolCall("1", "invoke_capability", `{"capability":"tool:greet","arguments":{"name":"`+strings.Repeat("x", n)+`"}}`, ","+said2026)
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
