package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/testkit"
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
	header := maps.Clone(v.header)
	maps.Copy(header, more)
	return post(v.t, v.url, body, header)
}

// again asks for what followed an event.
func (v *rawClient) again(id string) *http.Response {
	v.t.Helper()
	header := maps.Clone(v.header)
	header["Accept"], header["Last-Event-Id"] = "text/event-stream", id
	return roundTrip(v.t, http.MethodGet, v.url, "", header)
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

// TestQuestionOnTheResponse: what Ken asks during a call comes on the response to its
// request. The answer is a request of its own, and counts once and in its session.
func TestQuestionOnTheResponse(t *testing.T) {
	b, s := directly(t, office)
	h := web(t, s)
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
	testkit.Equal(t, "calls were made", len(b.calls), 1)

	// An answer in other letters is none.
	next = eventsOf(v.post(toolCall("2", "write", `{"name":"b"}`, ""), nil))
	e, _ = next()
	testkit.OK(t, json.Unmarshal([]byte(e.data), &asked))
	v.post(reply(`{"action":"decline","Action":"accept","content":{"decision":"allow once"}}`), nil)
	if e, _ = next(); !strings.Contains(e.data, `"isError":true`) || len(b.calls) != 1 {
		t.Errorf("an answer that can be read in two ways: %+v, %d calls made", e, len(b.calls))
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
			if res := roundTrip(t, http.MethodDelete, h.URL, "", map[string]string{headerSession: v.header[headerSession]}); res.StatusCode != 204 {
				t.Errorf("DELETE = %s", res.Status)
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
		next := eventsOf(v.post(toolCall("1", "write", fmt.Sprintf(`{"name":"%d"}`, i), ""), nil))
		e, _ := next()
		var asked struct{ ID string }
		if err := json.Unmarshal([]byte(e.data), &asked); err != nil {
			t.Fatalf("before %s: %+v, %v", format, e, err)
		}
		if res := v.post(fmt.Sprintf(format, asked.ID), nil); res.StatusCode != 202 {
			t.Errorf("POST %s: status %d, want 202", format, res.StatusCode)
		}
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
		<-ended
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
	_, s := directly(t, func(b *bench) {
		office(b)
		b.tool("tool:write", nameSchema, capability.Effects{}, func(_ context.Context, c capability.Call) (capability.Result, error) {
			runs <- struct{}{}
			for message := range report {
				c.Live.(capability.Reporter).Progress(1, 2, message)
			}
			return capability.Result{Parts: []capability.Part{{Text: "written"}}}, nil
		})
	})
	h := web(t, s)
	v := begin(t, h, sessionful, `{"elicitation":{}}`)
	res := v.post(toolCall("1", "write", `{"name":"a"}`, `,"_meta":{"progressToken":"p"}`), nil)
	e, _ := eventsOf(res)()
	var asked struct{ ID string }
	testkit.OK(t, json.Unmarshal([]byte(e.data), &asked))
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
