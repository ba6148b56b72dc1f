package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The site answers calls of the tools below with tasks, where the client knows
// them. What a gateway makes of a task is its own: the client takes a result, or
// follows the task that it gets.

const tasksExtension = "io.modelcontextprotocol/tasks"

type taskParams struct {
	mcp.ParamsBase
	ID        string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

type taskResult struct {
	mcp.ResultBase
	text json.RawMessage
}

func (r *taskResult) MarshalJSON() ([]byte, error) { return r.text, nil }

func (r *taskResult) UnmarshalJSON(data []byte) error {
	r.text = append(r.text[:0], data...)
	return nil
}

const roomQuestion = `{"room":{"method":"elicitation/create","params":{"mode":"form","message":"Which room?","requestedSchema":` +
	`{"type":"object","properties":{"room":{"type":"string"},"beds":{"type":"integer"}},"required":["room"]}}}}`

// addTasks adds tools that are tasks.
func (s *site) addTasks() error {
	for name, plain := range map[string]mcp.ToolHandler{ // for clients that know no tasks
		"task_ends": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it has ended"}}, Meta: mcp.Meta{"com.example/result": "r"}}, nil
		},
		"task_asks": ask("form", &mcp.ElicitParams{Mode: "form", Message: "Which room?", RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"room":{"type":"string"},"beds":{"type":"integer"}},"required":["room"]}`)}),
		"task_fails": breakOff,
	} {
		s.server.AddTool(&mcp.Tool{Name: name, Description: "Tests the feature " + name + ".", InputSchema: json.RawMessage(anyInput)}, plain)
	}
	s.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok || len(call.Params.Name) < 5 || call.Params.Name[:5] != "task_" {
				return next(ctx, method, req)
			}
			version, _ := call.Params.GetMeta()[mcp.MetaKeyProtocolVersion].(string)
			if caps := call.ClientCapabilities(); version < "2026-07-28" || caps == nil || caps.Extensions[tasksExtension] == nil {
				return next(ctx, method, req)
			}
			return &taskResult{text: json.RawMessage(fmt.Sprintf(`{"resultType":"task","taskId":%q,"status":"working","createdAt":"2026-01-02T03:04:05Z",`+
				`"lastUpdatedAt":"2026-01-02T03:04:05Z","ttlMs":60000,"pollIntervalMs":50}`, call.Params.Name))}, nil
		}
	})
	var mu sync.Mutex
	polls, answer := map[string]int{}, ""
	err := mcp.AddReceivingCustomMethod(s.server, "tasks/get", func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*taskResult, error) {
		mu.Lock()
		defer mu.Unlock()
		polls[p.ID]++
		status, more := "working", ""
		switch {
		case polls[p.ID] < 3:
		case p.ID == "task_ends":
			status, more = "completed", `,"result":{"content":[{"type":"text","text":"it has ended"}],"_meta":{"com.example/result":"r"}}`
		case p.ID == "task_fails":
			status, more = "failed", fmt.Sprintf(`,"error":{"code":%d,"message":"the site burnt down"}`, badCode)
		case answer == "":
			status, more = "input_required", `,"inputRequests":`+roomQuestion
		default:
			status, more = "completed", fmt.Sprintf(`,"result":{"content":[{"type":"text","text":%q}]}`, answer)
		}
		return &taskResult{text: json.RawMessage(fmt.Sprintf(`{"resultType":"complete","taskId":%q,"status":%q,"createdAt":"2026-01-02T03:04:05Z",`+
			`"lastUpdatedAt":"2026-01-02T03:04:05Z","ttlMs":60000,"pollIntervalMs":50%s}`, p.ID, status, more))}, nil
	})
	if err != nil {
		return err
	}
	return mcp.AddReceivingCustomMethod(s.server, "tasks/update", func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*taskResult, error) {
		mu.Lock()
		defer mu.Unlock()
		answer = string(p.Responses["room"])
		return &taskResult{text: json.RawMessage(`{"resultType":"complete"}`)}, nil
	})
}

// A taskWatcher is told every message, and remembers the last task that came.
type taskWatcher struct {
	mu sync.Mutex
	id string
}

var taskMessage = regexp.MustCompile(`^read: .*"resultType":"task".*"taskId":"([^"]+)"|^read: .*"taskId":"([^"]+)".*"resultType":"task"`)

func (w *taskWatcher) Write(p []byte) (int, error) {
	if m := taskMessage.FindSubmatch(p); m != nil {
		w.mu.Lock()
		w.id = string(m[1]) + string(m[2])
		w.mu.Unlock()
	}
	return len(p), nil
}

func (w *taskWatcher) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.id
	w.id = ""
	return id
}

// long calls a tool that may be a task, and returns what came of it in the end.
func (t *target) long(ctx context.Context, name string) (*mcp.CallToolResult, error) {
	t.watcher.take()
	res, err := t.call(ctx, name, `{}`, nil)
	id := t.watcher.take()
	if err != nil || id == "" {
		return res, err
	}
	for {
		got, err := mcp.CallCustomMethod[*taskParams, *taskResult](ctx, t.session, "tasks/get", &taskParams{ID: id})
		if err != nil {
			return nil, err
		}
		var task struct {
			Status string
			Result *mcp.CallToolResult
			Error  *jsonrpc.Error
			Asks   map[string]struct{ Params mcp.ElicitParams } `json:"inputRequests"`
		}
		if err := json.Unmarshal(got.text, &task); err != nil {
			return nil, err
		}
		switch task.Status {
		case "completed":
			return task.Result, nil
		case "failed":
			return nil, task.Error
		case "input_required":
			p := &taskParams{ID: id, Responses: map[string]json.RawMessage{}}
			for key, r := range task.Asks {
				t.add("elicit %s", asJSON(r.Params))
				p.Responses[key] = json.RawMessage(`{"action":"accept","content":{"room":"blue","beds":2}}`)
			}
			if _, err := mcp.CallCustomMethod[*taskParams, *taskResult](ctx, t.session, "tasks/update", p); err != nil {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// knowTasks lets a client ask about tasks.
func knowTasks(c *mcp.Client) error {
	if err := mcp.AddSendingCustomMethod[*taskParams, *taskResult](c, "tasks/get"); err != nil {
		return err
	}
	return mcp.AddSendingCustomMethod[*taskParams, *taskResult](c, "tasks/update")
}

// longCalls are the features of tasks. In older protocols, which have none, they are
// those of a plain call.
func (s *set) longCalls() {
	check := func(name, tool string, f func(t *target, mark int, res *mcp.CallToolResult, err error) error) {
		s.add("tools/call", name, func(ctx context.Context, t *target) error {
			mark := t.mark()
			res, err := t.long(ctx, tool)
			return f(t, mark, res, err)
		})
	}
	check("task of the server: its result with _meta (SEP-2663)", "task_ends", func(_ *target, _ int, res *mcp.CallToolResult, err error) error {
		if err != nil {
			return err
		}
		return same([]any{res.Content, res.Meta["com.example/result"]}, []any{[]mcp.Content{&mcp.TextContent{Text: "it has ended"}}, "r"})
	})
	check("task of the server: its question and the answer", "task_asks", func(t *target, mark int, res *mcp.CallToolResult, err error) error {
		if err != nil {
			return err
		}
		if err := contains(asJSON(res.Content), `\"room\":\"blue\"`); err != nil {
			return err
		}
		return t.wait(context.Background(), mark, "Which room?")
	})
	check("task of the server: its error", "task_fails", func(_ *target, _ int, res *mcp.CallToolResult, err error) error {
		if err == nil {
			return fmt.Errorf("a result: %s", asJSON(res))
		}
		return contains(err.Error(), "the site burnt down")
	})
}
