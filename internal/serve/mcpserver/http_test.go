package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func post(t *testing.T, url, body string, header map[string]string) *http.Response {
	t.Helper()
	return roundTrip(t, http.MethodPost, url, body, header)
}

// roundTrip makes a request of ada's, unless a header says otherwise.
func roundTrip(t *testing.T, method, url, body string, header map[string]string) *http.Response {
	t.Helper()
	r := testkit.Must(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer ada")
	for k, v := range header {
		if r.Header.Set(k, v); k == "Host" {
			r.Host = v
		}
	}
	res := testkit.Must(http.DefaultClient.Do(r))(t)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// TestHandlerRefuses: strangers, pages of other sites, other names for this
// machine, and bodies without end. What the SDK refuses as plain text is an error
// of JSON-RPC too, with the status and the headers that it had.
func TestHandlerRefuses(t *testing.T) {
	cfg := newBench(t, office).config()
	cfg.MaxBody, cfg.Hosts = 2048, []string{"ken.example.com"}
	h := web(t, New(cfg))
	for _, test := range []struct {
		name, method, body string
		header             map[string]string
		want               int
	}{
		{"a client", "POST", hello, nil, 200},
		{"nobody", "POST", hello, map[string]string{"Authorization": ""}, 401},
		{"no name", "POST", hello, map[string]string{"Authorization": "Bearer "}, 401},
		{"another site", "POST", hello, map[string]string{"Origin": "http://evil.example.com"}, 403},
		{"no site", "POST", hello, map[string]string{"Origin": "null"}, 403},
		{"a loopback page", "POST", hello, map[string]string{"Origin": "http://localhost:3000"}, 200},
		{"another name", "POST", hello, map[string]string{"Host": "evil.example.com"}, 403},
		{"both", "POST", hello, map[string]string{"Host": "evil.example.com", "Origin": "http://evil.example.com"}, 403},
		{"a name that was given", "POST", hello, map[string]string{"Host": "ken.example.com"}, 200},
		{"too long", "POST", hello + strings.Repeat(" ", 4096), nil, 413},
		{"too long with a session", "POST", hello + strings.Repeat(" ", 4096), map[string]string{headerSession: "x"}, 413},
		{"no JSON", "POST", "{", nil, 400},
		{"nothing", "POST", "", nil, 400},
		{"no such session", "POST", hello, map[string]string{headerSession: "none"}, 404},
		{"2026 without headers", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + said2026 + `}}`, nil, 400},
		{"a version to come", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + strings.Replace(said2026, sessionless, "2099-01-01", 1) + `}}`,
			map[string]string{headerVersion: "2099-01-01", "Mcp-Method": "tools/list"}, 400},
		{"a version that is none", "POST", hello, map[string]string{headerVersion: "1999-01-01"}, 400},
		{"a method that is none", "PUT", hello, nil, 405},
		{"no JSON by its type", "POST", hello, map[string]string{"Content-Type": "text/plain"}, 415},
		{"a client that takes no stream", "POST", hello, map[string]string{"Accept": "application/json"}, 400},
		{"a stream without a session", "GET", "", nil, 400},
		{"a stream of no session", "GET", "", map[string]string{headerSession: "none"}, 404},
		{"an end without a session", "DELETE", "", nil, 400},
		{"an end of no session", "DELETE", "", map[string]string{headerSession: "none"}, 404},
	} {
		res := roundTrip(t, test.method, h.URL, test.body, test.header)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != test.want {
			t.Errorf("%s: status %d %s, want %d", test.name, res.StatusCode, body, test.want)
		}
		if test.want >= 400 {
			checkRefusal(t, test.name, res, body)
		}
		if allow := res.Header.Get("Allow"); (test.want == http.StatusMethodNotAllowed) != (allow != "") {
			t.Errorf("%s: Allow is %q", test.name, allow)
		}
	}
}

// checkRefusal makes sure that a refusal is an error of JSON-RPC.
func checkRefusal(t *testing.T, name string, res *http.Response, body []byte) {
	t.Helper()
	var m struct {
		Version string `json:"jsonrpc"`
		Error   *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Version != "2.0" || m.Error == nil || m.Error.Code >= 0 || m.Error.Message == "" {
		t.Errorf("%s: status %d, body %q, want an error of JSON-RPC", name, res.StatusCode, body)
	}
	testkit.Equal(t, fmt.Sprintf("%s: Content-Type", name), res.Header.Get("Content-Type"), "application/json")
}

// TestSessionsAreTheirPrincipals: another's session does not exist.
func TestSessionsAreTheirPrincipals(t *testing.T) {
	b := newBench(t, office)
	h := web(t, New(b.config()))
	id := dialWeb(t, h, peer{version: sessionful}).ID()
	if id == "" {
		t.Fatal("the session has no id")
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for who, want := range map[string]int{"ada": 200, "eve": 404} {
		res := post(t, h.URL, list, map[string]string{headerSession: id, headerVersion: sessionful, "Authorization": "Bearer " + who})
		if res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", who, res.StatusCode, want)
		}
	}
}

// TestSessionsAreBounded: the one that has been idle for longest makes room,
// those that are used stay, and one that nobody uses is closed.
func TestSessionsAreBounded(t *testing.T) {
	b := newBench(t, office)
	ended := make(chan string, 10)
	cfg := b.config()
	cfg.MaxSessions, cfg.EndSession = 2, func(id string) { ended <- id }
	h := web(t, New(cfg))
	begin := func() string { return begin(t, h, sessionful, "{}").header[headerSession] }
	first, second := begin(), begin()
	if open := roundTrip(t, http.MethodGet, h.URL, "", map[string]string{"Accept": "text/event-stream", headerSession: first}); open.StatusCode != 200 {
		t.Fatalf("GET = %s", open.Status)
	}
	third := begin()
	if got := <-ended; got != second || third == "" {
		t.Errorf("ended %s, began %q; want that %s made room", got, third, second)
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for id, want := range map[string]int{first: 200, second: 404, third: 200} {
		if res := post(t, h.URL, list, map[string]string{headerSession: id}); res.StatusCode != want {
			t.Errorf("session %s: status %d, want %d", id, res.StatusCode, want)
		}
	}

	cfg.Idle = time.Millisecond
	h = web(t, New(cfg))
	idle := begin()
	testkit.Equal(t, "ended", <-ended, idle)
}

// TestSessionsOfOneAreBounded: a client that begins one session after the other ends its
// own, and no session of others.
func TestSessionsOfOneAreBounded(t *testing.T) {
	b := newBench(t, office)
	cfg := b.config()
	cfg.MaxSessions = 16
	h := web(t, New(cfg))
	begin := func(who string) string {
		res := post(t, h.URL, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+sessionful+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, map[string]string{"Authorization": "Bearer " + who})
		return res.Header.Get(headerSession)
	}
	adas, first, last := begin("ada"), begin("eve"), ""
	for range 20 {
		last = begin("eve")
	}
	for id, want := range map[string]int{"ada " + adas: 200, "eve " + first: 404, "eve " + last: 200} {
		who, session, _ := strings.Cut(id, " ")
		res := post(t, h.URL, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, map[string]string{headerSession: session, headerVersion: sessionful, "Authorization": "Bearer " + who})
		testkit.Equal(t, "status of a session of "+who, res.StatusCode, want)
	}
}

// TestStatelessClientsKeepTheirSession: a client of 2026-07-28 has the same
// session in all its requests, and another client another.
func TestStatelessClientsKeepTheirSession(t *testing.T) {
	b := newBench(t, office)
	cfg := b.config()
	cfg.Surface, cfg.Intents = direct, intents
	h := web(t, New(cfg))
	seen := func(p peer) (session, intent string) {
		p.version = sessionless
		call(t, dialWeb(t, h, p), "greet", map[string]any{"name": "x"})
		return b.last().Session, b.last().Intent
	}
	call(t, dialWeb(t, h, peer{name: "one", version: sessionless}), toolIntent, map[string]any{"intent": "PLAN"})
	one, intent := seen(peer{name: "one"})
	if intent != "PLAN" {
		t.Errorf("intent = %q, want PLAN", intent)
	}
	again, _ := seen(peer{name: "one"})
	other, none := seen(peer{name: "two"})
	third, _ := seen(peer{name: "one", who: eve})
	if one == "" || one != again || one == other || one == third || none != "" {
		t.Errorf("sessions = %q, %q, of another client %q, of another person %q, whose intent is %q", one, again, other, third, none)
	}
}

// TestListChanged: clients are told that what they have listed has changed, and
// those for whom nothing has are not.
func TestListChanged(t *testing.T) {
	ways(t, func(t *testing.T, _ string, connect func(*testing.T, *Server, peer) *mcp.ClientSession) {
		b := newBench(t, office)
		s := New(b.config())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Watch(ctx) }()
		defer func() { cancel(); <-done }()
		told := map[string]chan struct{}{"Visual Studio Code": make(chan struct{}, 10_000), "zed": make(chan struct{}, 10_000)}
		clients := map[string]*mcp.ClientSession{}
		for name, ch := range told {
			clients[name] = connect(t, s, peer{name: name, opts: &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { ch <- struct{}{} }}})
			names(t, clients[name])
		}
		late := 0 // the client opens the stream for news when it likes
		testkit.Wait(t, "a client is told of a change", func() bool {
			b.tool(fmt.Sprint("tool:late", late), nameSchema, quiet, greet)
			b.load(t)
			late++
			return len(told["Visual Studio Code"]) > 0
		})
		if got := names(t, clients["Visual Studio Code"]); !slices.Contains(got, "late0") {
			t.Errorf("ListTools() = %v, want late0", got)
		}
		if len(told["zed"]) > 0 {
			t.Error("a bridged client was told, though its menu is the same")
		}
	})
}

// TestHeadersOfArguments: a tool whose arguments are in headers too is called
// only where both say the same.
func TestHeadersOfArguments(t *testing.T) {
	_, s := directly(t, func(b *bench) {
		b.tool("mcp:s/where", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`, quiet, nil)
		b.tool("mcp:s/broken", `{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"no good\n"}}}`, quiet, nil)
	})
	h := web(t, s)
	names(t, dialWeb(t, h, peer{version: sessionless}))
	body := toolCall("1", "where", `{"region":"eu"}`, ","+said2026)
	for region, want := range map[string]int{"eu": 200, "us": 400, "": 400} {
		header := map[string]string{headerVersion: sessionless, "Mcp-Method": "tools/call", "Mcp-Name": "where"}
		if region != "" {
			header["Mcp-Param-Region"] = region
		}
		if res := post(t, h.URL, body, header); res.StatusCode != want {
			text, _ := io.ReadAll(res.Body)
			t.Errorf("region %q: status %d %s, want %d", region, res.StatusCode, text, want)
		}
	}
}
