//go:build unix

package link_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/testkit/linktest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rawResult is a result of any form.
type rawResult struct {
	mcp.ResultBase
	text string
}

func (r *rawResult) MarshalJSON() ([]byte, error) { return []byte(r.text), nil }

type aboutTask struct {
	mcp.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses"`
}

// A taskServer answers every call with a task, whose end its name says.
type taskServer struct {
	mu        sync.Mutex
	polls     int
	answered  string
	cancelled chan string
	declared  bool
	names     []string // of the headers of requests about tasks
}

func (s *taskServer) serve(t *testing.T) *mcp.Server {
	srv := newServer(false)
	for _, name := range []string{"ends", "fails", "asks", "never", "broken", "nameless", "stops"} {
		addTool(srv, name, nil)
	}
	srv.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			caps := call.ClientCapabilities()
			s.mu.Lock()
			s.declared = caps != nil && caps.Extensions["io.modelcontextprotocol/tasks"] != nil
			s.mu.Unlock()
			id := call.Params.Name
			if id == "nameless" {
				id = ""
			}
			return &rawResult{text: fmt.Sprintf(`{"resultType":"task","taskId":%q,"status":"working","ttlMs":60000,"pollIntervalMs":1,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"}`, id)}, nil
		}
	})
	add := func(method string, f func(*aboutTask) (string, error)) {
		err := mcp.AddReceivingCustomMethod(srv, method, func(_ context.Context, _ *mcp.ServerSession, p *aboutTask) (*rawResult, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			text, err := f(p)
			return &rawResult{text: text}, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("tasks/get", func(p *aboutTask) (string, error) {
		show := func(status, more string) (string, error) {
			return fmt.Sprintf(`{"resultType":"complete","taskId":%q,"status":%q,"pollIntervalMs":1%s}`, p.ID, status, more), nil
		}
		if s.polls++; s.polls < 3 {
			return show("working", "")
		}
		switch p.ID {
		case "ends":
			return show("completed", `,"result":{"content":[{"type":"text","text":"the end"}],"_meta":{"a":1}}`)
		case "fails":
			return show("failed", `,"error":{"code":-32099,"message":"no luck"}`)
		case "stops":
			return show("cancelled", `,"statusMessage":"enough"`)
		case "asks":
			if s.answered != "" && s.polls > 8 { // it looks at the answer late
				return show("completed", fmt.Sprintf(`,"result":{"content":[{"type":"text","text":%q}]}`, s.answered))
			}
			return show("input_required", `,"inputRequests":{"who":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}`)
		case "broken":
			return show("sleeping", "")
		}
		return show("working", "")
	})
	add("tasks/update", func(p *aboutTask) (string, error) {
		s.answered = string(p.Responses["who"])
		return `{"resultType":"complete"}`, nil
	})
	add("tasks/cancel", func(p *aboutTask) (string, error) {
		s.cancelled <- p.ID
		return `{"resultType":"complete"}`, nil
	})
	return srv
}

// TestTasksOfServers: a call that a server answers with a task ends with what came
// of the task. What the task asks is asked, and a task that never ends is cancelled
// when the time of the call is over.
func TestTasksOfServers(t *testing.T) {
	for _, way := range []string{"stdio", "http"} {
		t.Run(way, func(t *testing.T) {
			s := &taskServer{cancelled: make(chan string, 1)}
			srv := s.serve(t)
			cfg := link.Config{Target: link.Target{Start: linktest.SDK(srv)}}
			if way == "http" {
				h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: true})
				web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasPrefix(r.Header.Get("Mcp-Method"), "tasks/") {
						s.mu.Lock()
						s.names = append(s.names, r.Header.Get("Mcp-Name"))
						s.mu.Unlock()
					}
					h.ServeHTTP(w, r)
				}))
				t.Cleanup(web.Close)
				cfg = link.Config{Target: link.Target{URL: web.URL, Client: web.Client()}}
			}
			l := open(t, cfg)
			for range 2 { // the SDK introduces Ken with the first request
				s.mu.Lock()
				s.polls = 0
				s.mu.Unlock()
				res, err := l.Call(soon(t), callOf(`{}`), "ends")
				if err != nil || textOf(res) != "the end" || !strings.Contains(res.Meta["_meta"], `"a":1`) {
					t.Fatalf("Call(ends) = %+v, %v; want the result of the task", res, err)
				}
			}
			if !s.declared {
				t.Error("the server was not told that Ken knows tasks")
			}
			for name, want := range map[string]string{"fails": "no luck", "stops": "cancelled its task: enough", "broken": `"sleeping", which is none`, "nameless": "has no id"} {
				if _, err := l.Call(soon(t), callOf(`{}`), name); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Call(%s) = %v, want %q", name, err, want)
				}
			}
			s.mu.Lock()
			s.polls = 0
			s.mu.Unlock()
			_, err := l.Call(soon(t), callOf(`{}`), "asks")
			q := inquiryOf(t, err)
			if len(q.Requests) != 1 || !strings.Contains(string(q.Requests["who"]), "Who?") {
				t.Fatalf("the task asks %v", q.Requests)
			}
			again := callOf(`{}`)
			again.State, again.Answers = q.State, map[string]json.RawMessage{"who": json.RawMessage(`{"action":"accept","content":{"name":"Luca"}}`)}
			res, err := l.Call(soon(t), again, "asks")
			if err != nil || !strings.Contains(textOf(res), "Luca") {
				t.Errorf("after the answer Call(asks) = %+v, %v", res, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := l.Call(ctx, callOf(`{}`), "never"); capability.KindOf(err) != capability.Timeout {
				t.Errorf("Call(never) = %v, want that its time is over", err)
			}
			if id := <-s.cancelled; id != "never" {
				t.Errorf("the server was told to cancel %q, want never", id)
			}
			if way == "http" && (len(s.names) == 0 || s.names[0] != "ends") {
				t.Errorf("requests about tasks name %q in their headers", s.names)
			}
		})
	}
}

// TestTaskOfAnotherCall: only the call that a task belongs to goes on with it. The
// state of a task is of no use to another tool, to other arguments, to another
// principal or in another session, and it cannot be forged.
func TestTaskOfAnotherCall(t *testing.T) {
	s := &taskServer{cancelled: make(chan string, 1), polls: 3}
	l := to(t, linktest.SDK(s.serve(t)))
	_, err := l.Call(soon(t), callOf(`{}`), "asks")
	state := inquiryOf(t, err).State
	for name, c := range map[string]struct {
		tool, state string
		change      func(*capability.Call)
	}{
		"tool":      {"ends", state, func(*capability.Call) {}},
		"arguments": {"asks", state, func(c *capability.Call) { c.Arguments = json.RawMessage(`{"a":1}`) }},
		"principal": {"asks", state, func(c *capability.Call) { c.Principal.ID = "ben" }},
		"session":   {"asks", state, func(c *capability.Call) { c.Session = "other" }},
		"made up":   {"ends", `ken-task:{"id":"asks"}`, func(*capability.Call) {}},
		"cut":       {"asks", state[:len(state)-2], func(*capability.Call) {}},
	} {
		call := callOf(`{}`)
		call.State, call.Answers = c.state, map[string]json.RawMessage{"who": json.RawMessage(`{"action":"accept","content":{"name":"Eve"}}`)}
		c.change(&call)
		if res, err := l.Call(soon(t), call, c.tool); err == nil || !strings.Contains(err.Error(), "the state is not one that was given for this call") {
			t.Errorf("%s: Call(%s) = %+v, %v; want that the state is refused", name, c.tool, res, err)
		}
	}
	if s.mu.Lock(); s.answered != "" {
		t.Errorf("the task was answered with %s", s.answered)
	}
	s.mu.Unlock()
}
