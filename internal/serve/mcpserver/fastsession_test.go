package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
)

// A rawClient is a session over HTTP of a client that writes its messages itself.
type rawClient struct {
	t       *testing.T
	url     string
	version string
	header  map[string]string
}

// begin starts a session of a version, for a client with these capabilities.
func begin(t *testing.T, h *httptest.Server, version, capabilities string) *rawClient {
	t.Helper()
	v := &rawClient{t: t, url: h.URL, version: version, header: map[string]string{}}
	res := v.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":`+capabilities+`,"clientInfo":{"name":"t","version":"1"}}}`, nil)
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	v.header = map[string]string{headerSession: res.Header.Get(headerSession), headerVersion: version}
	v.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	return v
}

func (v *rawClient) post(body string, more map[string]string) *http.Response {
	v.t.Helper()
	header := map[string]string{}
	for _, m := range []map[string]string{v.header, more} {
		for key, value := range m {
			header[key] = value
		}
	}
	return post(v.t, v.url, body, header)
}

// again asks for what followed an event.
func (v *rawClient) again(id string) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer ada"}, "Last-Event-Id": {id}}
	for key, value := range v.header {
		r.Header.Set(key, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { res.Body.Close() })
	return res
}

// An event is one of a stream.
type event struct{ name, id, data string }

// events reads a stream, one at each call; false is its end.
func eventsOf(res *http.Response) func() (event, bool) {
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return func() (e event, ok bool) {
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				return e, true
			}
		}
		return e, false
	}
}

func toolCall(id, name, arguments, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + more + `}}`
}

func greeting(id, name string) string {
	return toolCall(id, "invoke_capability", `{"capability":"tool:greet","arguments":{"name":"`+name+`"}}`, "")
}

// bySDK has the SDK serve a request that would be served past it.
var bySDK = map[string]string{"Accept": "application/json;q=1, text/event-stream"}

// TestSessionCallsPastTheSDK: a call of a session that is served past the SDK is
// answered as the SDK answers it, in each version.
func TestSessionCallsPastTheSDK(t *testing.T) {
	h := web(t, New(newBench(t, office).config()))
	greetBob := greeting("7", "Bob")
	for _, version := range mcp.SupportedProtocolVersions() {
		if version >= sessionless {
			continue
		}
		v := begin(t, h, version, "{}")
		for name, body := range map[string]string{
			"call":                 greetBob,
			"an id of letters":     greeting(`"a\u00e9"`, "Bob"),
			"wrong arguments":      toolCall("7", "invoke_capability", `{"capability":"tool:greet","arguments":{"name":1}}`, ""),
			"question":             toolCall("7", "invoke_capability", `{"capability":"tool:write","arguments":{"name":"Bob"}}`, ""),
			"search":               toolCall("7", "discover_capabilities", `{"query":"greet somebody"}`, ""),
			"unknown tool":         toolCall("7", "nothing", `{}`, ""),
			"no arguments":         `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"invoke_capability"}}`,
			"a long answer":        greeting("7", strings.Repeat("Bob ", 2000)),
			"progress":             toolCall("7", "invoke_capability", `{"capability":"tool:greet","arguments":{"name":"Bob"}}`, `,"_meta":{"progressToken":"p"}`),
			"an argument twice":    strings.Replace(greetBob, `"name":"Bob"`, `"name":"Bob","name":"Eve"`, 1),
			"a batch":              `[` + greetBob + `]`,
			"another version":      toolCall("7", "invoke_capability", `{"capability":"tool:greet","arguments":{"name":"Bob"}}`, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`),
			"metadata of its own":  toolCall("7", "invoke_capability", `{"capability":"tool:greet","arguments":{"name":"Bob"}}`, `,"_meta":{"example.com/a":[1,2]}`),
			"metadata not of JSON": strings.Replace(greetBob, `"name":"invoke_capability"`, `"name":"invoke_capability","_meta":7`, 1),
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				type reply struct {
					status  int
					kind    string
					message any
				}
				ask := func(more map[string]string) reply {
					res := v.post(body, more)
					text, err := io.ReadAll(res.Body)
					if err != nil {
						t.Fatal(err)
					}
					out := reply{status: res.StatusCode, kind: res.Header.Get("Content-Type")}
					if _, data, ok := strings.Cut(string(text), "data: {"); ok {
						text = []byte("{" + data)
					}
					if json.Unmarshal(text, &out.message) != nil {
						out.message = string(text)
					}
					return out
				}
				ours, theirs := ask(nil), ask(bySDK)
				if !reflect.DeepEqual(withoutTicket(ours), withoutTicket(theirs)) {
					t.Errorf("past the SDK: %+v\nby the SDK:   %+v", ours, theirs)
				}
			})
		}
	}
}

// withoutTicket writes an answer without the number of the ticket that it names.
func withoutTicket(v any) string {
	before, after, found := strings.Cut(fmt.Sprint(v), "ken approve grant ")
	if found {
		_, after, _ = strings.Cut(after, " ")
	}
	return before + after
}

// TestPlainSessionCallsTakeTheFastWay: what usual clients send is served past the SDK,
// and what could need more of the protocol is not.
func TestPlainSessionCallsTakeTheFastWay(t *testing.T) {
	s := New(newBench(t, office).config())
	v := begin(t, web(t, s), sessionful, "{}")
	body := greeting("7", "Bob")
	for _, tt := range []struct {
		name, body, key, value string
		fast                   bool
	}{
		{"plain", body, "", "", true},
		{"no version in the header", body, headerVersion, "", true},
		{"progress", strings.Replace(body, `"name"`, `"_meta":{"progressToken":1},"name"`, 1), "", "", true},
		{"answers", strings.Replace(body, `"arguments":{`, `"inputResponses":{},"arguments":{`, 1), "", "", false},
		{"notification", strings.Replace(body, `"id":7,`, ``, 1), "", "", false},
		{"batch", `[` + body + `]`, "", "", false},
		{"another principal", body, "X-Who", "eve", false},
		{"another session", body, headerSession, "s", false},
		{"no session", body, headerSession, "", false},
		{"unknown version", body, headerVersion, "2025-01-01", false},
		{"a version without sessions", body, headerVersion, sessionless, false},
		{"only JSON", body, "Accept", "application/json", false},
		{"another type", body, "Content-Type", "text/plain", false},
		{"a stream that broke", body, "Last-Event-Id", "1", false},
		{"an argument twice", strings.Replace(body, `{"name":"Bob"}`, `{"name":"Bob","name":"Eve"}`, 1), "", "", false},
		{"not JSON", body + `]`, "", "", false},
		{"a list", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, "", "", false},
		{"the end of a call that does not run", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, "", "", false},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":"ken-question-1","result":{}}`, "", "", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(tt.body))
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		for key, value := range v.header {
			r.Header.Set(key, value)
		}
		if tt.key != "" {
			r.Header.Set(tt.key, tt.value)
		}
		who := ada
		if tt.key == "X-Who" {
			who = capability.Principal{ID: tt.value}
		}
		a := s.audience(who)
		a.web.Do(a.open)
		w := httptest.NewRecorder()
		if got := a.serveCall(w, r, []byte(tt.body)); got != tt.fast || got != (w.Body.Len() > 0) {
			t.Errorf("%s: served past the SDK: %t, %s", tt.name, got, w.Body)
		}
	}
}

// TestQuestionOnTheResponse: what Ken asks during a call comes on the response to its
// request. The answer is a request of its own, and counts once and in its session.
func TestQuestionOnTheResponse(t *testing.T) {
	b := newBench(t, office)
	cfg := b.config()
	cfg.Surface = direct
	h := web(t, New(cfg))
	v, other := begin(t, h, "2025-06-18", `{"elicitation":{}}`), begin(t, h, "2025-06-18", `{"elicitation":{}}`)
	next := eventsOf(v.post(toolCall("1", "write", `{"name":"a"}`, ""), nil))
	e, ok := next()
	var asked struct {
		ID     string
		Method string
		Params struct{ Message string }
	}
	if !ok || json.Unmarshal([]byte(e.data), &asked) != nil || asked.Method != "elicitation/create" || !strings.Contains(asked.Params.Message, "tool:write") {
		t.Fatalf("the first event is %+v, want a question about tool:write", e)
	}
	reply := func(result string) string {
		return `{"jsonrpc":"2.0","id":"` + asked.ID + `","result":` + result + `}`
	}
	const yes = `{"action":"accept","content":{"decision":"allow once"}}`
	for _, try := range []struct {
		of     *rawClient
		body   string
		status int
	}{
		{other, reply(yes), 202}, // taken by the SDK, for which it answers nothing
		{v, `{"jsonrpc":"2.0","id":"` + asked.ID + `","id":"x","result":` + yes + `}`, 400},
		{v, reply(yes), 202},
		{v, reply(`{"action":"decline"}`), 202},
	} {
		if res := try.of.post(try.body, nil); res.StatusCode != try.status {
			t.Errorf("POST %s: status %d, want %d", try.body, res.StatusCode, try.status)
		}
	}
	e, _ = next()
	if !strings.Contains(e.data, "hello a") || e.id == "" {
		t.Errorf("after the answer: %+v, want the greeting", e)
	}
	if _, more := next(); more {
		t.Error("the stream goes on after the answer")
	}
	if n := len(b.calls); n != 1 {
		t.Errorf("%d calls were made, want 1", n)
	}

	// An answer in other letters is none.
	next = eventsOf(v.post(toolCall("2", "write", `{"name":"b"}`, ""), nil))
	e, _ = next()
	if err := json.Unmarshal([]byte(e.data), &asked); err != nil {
		t.Fatal(err)
	}
	v.post(reply(`{"action":"decline","Action":"accept","content":{"decision":"allow once"}}`), nil)
	if e, _ = next(); !strings.Contains(e.data, `"isError":true`) || len(b.calls) != 1 {
		t.Errorf("an answer that can be read in two ways: %+v, %d calls made", e, len(b.calls))
	}
}

// TestQuestionsNeedNoOtherStream: a client that has only the responses to its requests
// is asked all the same, and told of progress.
func TestQuestionsNeedNoOtherStream(t *testing.T) {
	b := newBench(t, func(b *bench) {
		office(b)
		b.tool("tool:slow", nameSchema, quiet, func(_ context.Context, c capability.Call) (capability.Result, error) {
			if r, ok := c.Live.(capability.Reporter); ok {
				r.Progress(1, 2, "half")
			}
			return capability.Result{Parts: []capability.Part{{Text: "done"}}}, nil
		})
	})
	cfg := b.config()
	cfg.Surface = direct
	h := web(t, New(cfg))
	told := make(chan string, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params.Message },
	})
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: h.URL, HTTPClient: &http.Client{Transport: as("ada")}, DisableStandaloneSSE: true,
	}, &mcp.ClientSessionOptions{ProtocolVersion: sessionful})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if res := call(t, cs, "write", map[string]any{"name": "a"}); res.IsError {
		t.Errorf("write = %q, want an answer", text(res))
	}
	p := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"name": "a"}}
	p.SetProgressToken("p")
	if res, err := cs.CallTool(t.Context(), p); err != nil || res.IsError {
		t.Fatalf("slow = %v, %v", res, err)
	}
	if got := <-told; got != "half" {
		t.Errorf("progress %q, want half", got)
	}
}

// stuck is an office with a tool that says when it runs, and then waits until it is
// told to end, or is ended.
func stuck(runs chan<- struct{}, end <-chan struct{}, ended chan<- error) func(*bench) {
	return func(b *bench) {
		office(b)
		b.tool("tool:stuck", nameSchema, quiet, func(ctx context.Context, _ capability.Call) (capability.Result, error) {
			runs <- struct{}{}
			select {
			case <-ctx.Done():
				ended <- ctx.Err()
				return capability.Result{}, ctx.Err()
			case <-end:
				return capability.Result{Parts: []capability.Part{{Text: "the end"}}}, nil
			}
		})
	}
}

const callStuck = `{"capability":"tool:stuck","arguments":{"name":"a"}}`

// TestEndOfSessionCalls: a call that its client cancels ends, and so do those of a
// session that ends. The same id is not used twice at once.
func TestEndOfSessionCalls(t *testing.T) {
	runs, ended := make(chan struct{}), make(chan error, 1)
	h := web(t, New(newBench(t, stuck(runs, nil, ended)).config()))
	v := begin(t, h, sessionful, "{}")
	for _, end := range []func(){
		func() {
			res := v.post(toolCall("5", "invoke_capability", callStuck, ""), nil)
			if res.StatusCode != 400 {
				t.Errorf("the same id twice: status %d, want 400", res.StatusCode)
			}
			v.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"enough"}}`, nil)
		},
		func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer ada")
			r.Header.Set(headerSession, v.header[headerSession])
			if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != 204 {
				t.Errorf("DELETE = %v, %v", res, err)
			}
		},
	} {
		go func() { <-runs }()
		res := v.post(toolCall("5", "invoke_capability", callStuck, ""), nil) // until its first event
		end()
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != context.Canceled {
			t.Errorf("the call ended with %v, want %v", err, context.Canceled)
		}
	}
}

// TestAnswerOfABrokenStream: a client whose connection breaks during a long call gets
// the answer when it asks again, before the call ends and after.
func TestAnswerOfABrokenStream(t *testing.T) {
	runs, end := make(chan struct{}), make(chan struct{})
	h := web(t, New(newBench(t, stuck(runs, end, nil)).config()))
	v := begin(t, h, sessionful, "{}")
	for _, early := range []bool{true, false} {
		go func() { <-runs }()
		res := v.post(toolCall("5", "invoke_capability", callStuck, ""), nil)
		first, _ := eventsOf(res)()
		if first.name != "prime" || !strings.HasSuffix(first.id, "_0") || first.data != "" {
			t.Fatalf("the first event is %+v, want one with only an id", first)
		}
		res.Body.Close()
		if early {
			go func() { end <- struct{}{} }()
		} else {
			end <- struct{}{}
		}
		if e, _ := eventsOf(v.again(first.id))(); !strings.Contains(e.data, "the end") {
			t.Errorf("asked for again: %+v, want the answer", e)
		}
	}
}

// TestAnswersAndEndsHoweverWritten: an answer counts and a call ends whatever texts are in
// the message, in a batch where the protocol has those, and however the id is written.
func TestAnswersAndEndsHoweverWritten(t *testing.T) {
	runs, ended := make(chan struct{}, 1), make(chan error, 1)
	b := newBench(t, stuck(runs, nil, ended))
	cfg := b.config()
	cfg.Surface = direct
	h := web(t, New(cfg))
	const version = "2025-03-26"
	v := begin(t, h, version, `{"elicitation":{}}`)
	answer := func(note string) string {
		return `{"jsonrpc":"2.0","id":"%s","result":{"action":"accept","content":{"decision":"allow once","note":"` + note + `"}}}`
	}
	for i, format := range []string{
		answer("tools/call"), answer("notifications/cancelled"), `[` + answer("") + `]`,
		`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},` + answer("") + `]`,
	} {
		res := v.post(toolCall("1", "write", fmt.Sprintf(`{"name":"%d"}`, i), ""), nil)
		next := eventsOf(res)
		e, _ := next()
		var asked struct{ ID string }
		if err := json.Unmarshal([]byte(e.data), &asked); err != nil {
			t.Fatalf("before %s: %+v, %v", format, e, err)
		}
		if res := v.post(fmt.Sprintf(format, asked.ID), nil); res.StatusCode != 202 {
			t.Errorf("POST %s: status %d, want 202", format, res.StatusCode)
		}
		time.AfterFunc(5*time.Second, func() { res.Body.Close() })
		if e, _ = next(); !strings.Contains(e.data, "hello") {
			t.Errorf("after the answer %s: %+v, want the greeting", format, e)
		}
	}
	for _, tt := range []struct{ id, end string }{
		{`5`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5.0}}`},
		{`"a/b"`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a\/\u0062"}}`},
		{`"a\/b"`, `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a/b","reason":"tools/call"}}]`},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.ReadAll(v.post(toolCall(tt.id, "stuck", `{"name":"a"}`, ""), nil).Body)
		}()
		<-runs
		v.post(tt.end, nil)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s does not end the call %s", tt.end, tt.id)
		}
		<-done
	}
}

// TestNothingIsKeptOfAnEndedSession: the store of events has nothing of a session that
// ended while its calls ran.
func TestNothingIsKeptOfAnEndedSession(t *testing.T) {
	runs, ended, over := make(chan struct{}, 1), make(chan error, 1), make(chan string, 1)
	cfg := newBench(t, stuck(runs, nil, ended)).config()
	cfg.EndSession = func(id string) { over <- id }
	s := New(cfg)
	v := begin(t, web(t, s), sessionful, "{}")
	res := v.post(toolCall("5", "invoke_capability", callStuck, ""), nil) // until its first event
	<-runs
	a := s.audience(ada)
	a.stateful.live.Range(func(ss, _ any) bool { ss.(*mcp.ServerSession).Close(); return true })
	<-ended
	if _, err := io.ReadAll(res.Body); err != nil { // until the last event
		t.Error(err)
	}
	gone := false
	for _, err := range a.stateful.kept.After(t.Context(), <-over, "", -1) {
		gone = err != nil && strings.Contains(err.Error(), "unknown session ID")
	}
	if !gone {
		t.Error("events of a session are kept after its end")
	}
}

// TestBrokenStreamGoesOn: a client whose connection broke reads on where it was, also what
// is asked and reported after that. The latest connection is the one that counts.
func TestBrokenStreamGoesOn(t *testing.T) {
	report, runs := make(chan string), make(chan struct{}, 1)
	b := newBench(t, func(b *bench) {
		office(b)
		b.tool("tool:write", nameSchema, capability.Effects{}, func(_ context.Context, c capability.Call) (capability.Result, error) {
			runs <- struct{}{}
			for message := range report {
				c.Live.(capability.Reporter).Progress(1, 2, message)
			}
			return capability.Result{Parts: []capability.Part{{Text: "written"}}}, nil
		})
	})
	cfg := b.config()
	cfg.Surface = direct
	h := web(t, New(cfg))
	v := begin(t, h, sessionful, `{"elicitation":{}}`)
	res := v.post(toolCall("1", "write", `{"name":"a"}`, `,"_meta":{"progressToken":"p"}`), nil)
	e, _ := eventsOf(res)()
	var asked struct{ ID string }
	if err := json.Unmarshal([]byte(e.data), &asked); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	first := v.again(e.id)
	v.post(`{"jsonrpc":"2.0","id":"`+asked.ID+`","result":{"action":"accept","content":{"decision":"allow once"}}}`, nil)
	<-runs
	report <- "one"
	if e, _ = eventsOf(first)(); !strings.Contains(e.data, `"one"`) {
		t.Errorf("after the answer: %+v, want progress", e)
	}
	second := v.again(e.id)
	if _, more := eventsOf(first)(); more {
		t.Error("the older connection goes on")
	}
	report <- "two"
	close(report)
	next := eventsOf(second)
	for i, want := range []string{`"two"`, "written"} {
		e, _ := next()
		if number := fmt.Sprintf("_%d", i+2); !strings.Contains(e.data, want) || !strings.HasSuffix(e.id, number) {
			t.Errorf("event %+v, want %s with an id that ends in %s", e, want, number)
		}
	}
	if _, more := next(); more {
		t.Error("the stream goes on after the answer")
	}
	next = eventsOf(v.again(strings.Replace(e.id, "_1", "_0", 1)))
	for _, want := range []string{`"one"`, `"two"`, "written"} {
		if e, _ := next(); !strings.Contains(e.data, want) {
			t.Errorf("asked for again: %+v, want %s", e, want)
		}
	}
}
