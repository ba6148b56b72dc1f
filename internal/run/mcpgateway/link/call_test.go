//go:build unix

//lint:file-ignore SA1019 Servers of the older protocols need what the newest calls deprecated.

package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/testkit/linktest"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var anything = &jsonschema.Schema{Type: "object"}

func addTool(s *mcp.Server, name string, h mcp.ToolHandler) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: anything}, h)
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// fullServer has one tool for each thing that a link must carry.
func fullServer(old bool) *mcp.Server {
	s := newServer(old)
	addTool(s, "echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(string(r.Params.Arguments)), nil
	})
	addTool(s, "fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res := say("it broke")
		res.IsError = true
		return res, nil
	})
	addTool(s, "refuse", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "x must be \x1b[1m1"}
	})
	addTool(s, "break", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32099, Message: strings.Repeat("bad ", 1000)}
	})
	addTool(s, "report", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(),
				Progress: float64(i + 1), Total: 3, Message: "step"})
		}
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "r", Data: "careful"})
		return say("reported"), nil
	})
	addTool(s, "page", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{{Mode: "url", URL: "http://x.test/", Message: "sign in", ElicitationID: "e"}})
	})
	s.AddResource(&mcp.Resource{URI: "mem:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem:///a", MIMEType: "text/plain", Text: "A"}, {URI: "mem:///b", Blob: []byte{1}}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:///{x}", Name: "t"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi " + r.Params.Arguments["who"]}}}}, nil
	})
	return s
}

// eachWay runs f over every transport, with a server of each age.
func eachWay(t *testing.T, make func(old bool) *mcp.Server, f func(t *testing.T, cfg link.Config, old bool)) {
	for _, old := range []bool{true, false} {
		age := map[bool]string{true: "old", false: "new"}[old]
		t.Run("stdio "+age, func(t *testing.T) {
			f(t, link.Config{Target: link.Target{Start: linktest.SDK(make(old))}}, old)
		})
		t.Run("http "+age, func(t *testing.T) {
			s := make(old)
			web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: !old, PropagateRequestCancellation: true}))
			t.Cleanup(web.Close)
			f(t, link.Config{Target: link.Target{URL: web.URL, Client: web.Client()}}, old)
		})
	}
	t.Run("sse", func(t *testing.T) {
		s := make(true)
		web := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
		t.Cleanup(web.CloseClientConnections)
		t.Cleanup(web.Close)
		f(t, link.Config{Target: link.Target{URL: web.URL, SSE: true, Client: web.Client()}}, true)
	})
}

// TestListsBesideCalls: lists are read while calls are made, as a server's news
// make it. They go by different ways, and share what says who asks.
func TestListsBesideCalls(t *testing.T) {
	l := to(t, linktest.SDK(fullServer(false)))
	ctx := soon(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for range 15 {
				if lists, err := l.Lists(ctx); err != nil || len(lists.Tools) != 6 {
					t.Errorf("Lists() = %+v, %v", lists, err)
				}
			}
		})
		group.Go(func() {
			for range 50 {
				wantText(t, l, callOf(`{"n":1}`), "echo", `{"n":1}`)
			}
		})
	}
	group.Wait()
}

func TestEachWay(t *testing.T) {
	eachWay(t, fullServer, func(t *testing.T, cfg link.Config, old bool) {
		l := open(t, cfg)
		if got := l.Info(); got.Title != "The Tester" || !got.HasTools || !got.HasPrompts || !got.HasResources || (got.Protocol < "2026") != old {
			t.Errorf("Info() = %+v", got)
		}
		lists, err := l.Lists(soon(t))
		if err != nil || len(lists.Tools) != 6 || len(lists.Prompts) != 1 || len(lists.Resources) != 1 || len(lists.Templates) != 1 || len(lists.Notes) != 0 {
			t.Errorf("Lists() = %+v, %v", lists, err)
		}
		wantText(t, l, callOf(`{"n":9007199254740993}`), "echo", `{"n":9007199254740993}`)
		res, err := l.Call(soon(t), callOf(``), "fail")
		if err != nil || !res.Failed || textOf(res) != "it broke" {
			t.Errorf("Call(fail) = %v, %v, want a failed result", res, err)
		}
		if res, err = l.Read(soon(t), callOf(``), "mem:///a"); err != nil || len(res.Parts) != 2 || res.Parts[0].Text != "A" || res.Parts[0].Link != "mem:///a" || res.Parts[1].Data[0] != 1 {
			t.Errorf("Read() = %+v, %v", res, err)
		}
		res, err = l.Prompt(soon(t), callOf(``), "greet", map[string]string{"who": "ann"})
		if err != nil || len(res.Parts) != 1 || res.Parts[0].MIME != link.MIMEPrompt || !strings.Contains(string(res.Parts[0].JSON), "hi ann") {
			t.Errorf("Prompt() = %+v, %v", res, err)
		}
		if err := l.Ping(soon(t)); err != nil {
			t.Errorf("Ping() = %v", err)
		}
		for tool, want := range map[string]struct {
			kind capability.ErrorKind
			says string
		}{"refuse": {capability.Invalid, "x must be"}, "break": {capability.Upstream, "bad bad"}, "no_such_tool": {capability.NotFound, "no_such_tool"}} {
			_, err := l.Call(soon(t), callOf(`{}`), tool)
			wantErr(t, tool, err, want.kind, want.says)
		}
		_, err = l.Read(soon(t), callOf(``), "mem:///zzz")
		wantErr(t, "Read(zzz)", err, capability.NotFound)
		if _, err := l.Prompt(soon(t), callOf(``), "zzz", nil); err == nil || capability.KindOf(err) == capability.Unavailable {
			t.Errorf("Prompt(zzz) = %v, want an error of the server", err)
		}
		testReports(t, l)
	})
}

// A listener collects what a call reports.
type listener struct {
	mu    sync.Mutex
	lines []string
}

func (l *listener) Write(p []byte) (int, error) { return len(p), nil }

func (l *listener) Progress(done, total float64, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%v/%v %s", done, total, message))
}

func (l *listener) Note(level, logger string, data json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s %s %s", level, logger, data))
}

func testReports(t *testing.T, l *link.Link) {
	t.Helper()
	var heard listener
	call := callOf(`{}`)
	call.Live = &heard
	if _, err := l.Call(soon(t), call, "report"); err != nil {
		t.Fatalf("Call(report) = %v", err)
	}
	for _, want := range []string{"1/3 step", "2/3 step", "3/3 step", `warning r "careful"`} {
		if !slices.Contains(heard.lines, want) {
			t.Errorf("Call(report) said %q, want %q among it", heard.lines, want)
		}
	}
}

// askServer asks before it answers.
func askServer(old bool) *mcp.Server {
	s := newServer(old)
	form := &mcp.ElicitParams{Message: "which?", RequestedSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"c": {Type: "string"}}}}
	addTool(s, "ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if !old {
			if got, ok := r.Params.InputResponses["which"].(*mcp.ElicitResult); ok {
				return say(fmt.Sprint(got.Action, " ", got.Content["c"], " ", r.Params.RequestState)), nil
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"which": form}, RequestState: "s1"}, nil
		}
		got, err := r.Session.Elicit(ctx, form)
		if err != nil {
			return nil, err
		}
		return say(fmt.Sprint(got.Action, " ", got.Content["c"], " s1")), nil
	})
	return s
}

func TestAsk(t *testing.T) {
	eachWay(t, askServer, func(t *testing.T, cfg link.Config, old bool) {
		l := open(t, cfg)
		call := callOf(`{"a":1}`)
		_, err := l.Call(soon(t), call, "ask")
		q := inquiryOf(t, err)
		if len(q.Requests) != 1 {
			t.Fatalf("requests = %s, want one", q.Requests)
		}
		call.State, call.Answers = q.State, map[string]json.RawMessage{}
		for name, raw := range q.Requests {
			var req struct {
				Method string
				Params struct{ Message string }
			}
			if json.Unmarshal(raw, &req) != nil || req.Method != "elicitation/create" || req.Params.Message != "which?" {
				t.Errorf("request = %s", raw)
			}
			call.Answers[name] = json.RawMessage(`{"action":"accept","content":{"c":"red"}}`)
		}
		conflict := func(what string, call capability.Call) {
			t.Helper()
			_, err := l.Call(soon(t), call, "ask")
			wantErr(t, what, err, capability.Conflict)
		}
		if old {
			other := call
			other.Principal.ID = "eve"
			conflict("the answer of another", other)
			other = call
			other.Arguments = json.RawMessage(`{"a":2}`)
			conflict("the answer for other arguments", other)
		}
		wantText(t, l, call, "ask", "accept red s1")
		if old {
			conflict("the same answer twice", call)
		}
	})
}

func TestParkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(true)
		outcomes := make(chan string, 2)
		addTool(s, "ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
			if err == nil {
				outcomes <- got.Action
			} else {
				outcomes <- err.Error()
			}
			return say("late"), nil
		})
		l, err := link.Open(t.Context(), link.Config{Target: link.Target{Name: "tester", Start: linktest.SDK(s)}, MaxParks: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		call := callOf(`{}`)
		_, err = l.Call(t.Context(), call, "ask")
		q := inquiryOf(t, err)
		began := time.Now()
		if got, took := <-outcomes, time.Since(began); !strings.Contains(got, "cancel") || took != 5*time.Minute {
			t.Errorf("the server heard %s after %v, want cancel after 5m", got, took)
		}
		_, err = l.Call(t.Context(), call, "ask")
		inquiryOf(t, err)
		_, err = l.Call(t.Context(), call, "ask")
		wantErr(t, "a second call that waits", err, capability.Unavailable, "the limit of 1 calls")
		call.State = q.State
		_, err = l.Call(t.Context(), call, "ask")
		wantErr(t, "an answer too late", err, capability.Conflict)
	})
}

// Two people on one connection: a question cannot be told to be of one of them.
func TestAskOfTwo(t *testing.T) {
	s := newServer(true)
	hold := make(chan struct{})
	here := make(chan struct{})
	addTool(s, "hold", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(here)
		<-hold
		return say("held"), nil
	})
	addTool(s, "ask", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
		if err != nil {
			return nil, err
		}
		return say(got.Action), nil
	})
	l := to(t, linktest.SDK(s))
	var wg sync.WaitGroup
	wg.Go(func() {
		wantText(t, l, callOf(`{}`), "hold", "held")
	})
	<-here
	call := callOf(`{}`)
	call.Principal.ID = "bob"
	wantText(t, l, call, "ask", "cancel")
	close(hold)
	wg.Wait()
}

func TestPages(t *testing.T) {
	l := to(t, linktest.SDK(fullServer(true)))
	call := callOf(`{}`)
	_, err := l.Call(soon(t), call, "page")
	q := inquiryOf(t, err)
	if !strings.Contains(string(q.Requests["page1"]), "http://x.test/") {
		t.Errorf("requests = %s, want the page", q.Requests)
	}
	call.State, call.Answers = q.State, map[string]json.RawMessage{"page1": json.RawMessage(`{"action":"decline"}`)}
	_, err = l.Call(soon(t), call, "page")
	wantErr(t, "a page that was declined", err, capability.Denied)
}

// The server hears of a call that was cancelled.
func TestCancel(t *testing.T) {
	stopped := make(chan struct{}, 1)
	eachWay(t, func(old bool) *mcp.Server {
		s := newServer(old)
		addTool(s, "wait", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
			<-ctx.Done()
			stopped <- struct{}{}
			return say("stopped"), nil
		})
		return s
	}, func(t *testing.T, cfg link.Config, old bool) {
		l := open(t, cfg)
		ctx, cancel := context.WithCancel(soon(t))
		call := callOf(`{}`)
		call.Live = cancelAtProgress{cancel: cancel}
		_, err := l.Call(ctx, call, "wait")
		if !errors.Is(err, context.Canceled) || capability.KindOf(err) != capability.Unavailable {
			t.Errorf("Call(wait) = %v, want it cancelled", err)
		}
		<-stopped // the server hears it
	})
}

type cancelAtProgress struct{ cancel context.CancelFunc }

func (c cancelAtProgress) Write(p []byte) (int, error)          { return len(p), nil }
func (c cancelAtProgress) Progress(float64, float64, string)    { c.cancel() }
func (c cancelAtProgress) Note(string, string, json.RawMessage) {}
