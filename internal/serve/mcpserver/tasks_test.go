package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/testkit"
)

// A taskClient makes requests of the protocol without sessions, one by one.
type taskClient struct {
	url, who     string
	capabilities string
}

const knowsTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

type taskAnswer struct {
	ResultType    string
	TaskID        string `json:"taskId"`
	Status        string
	StatusMessage string
	TTL           int64 `json:"ttlMs"`
	Poll          int64 `json:"pollIntervalMs"`
	IsError       bool
	Content       []struct{ Text string }
	Result        struct {
		Content []struct{ Text string }
		IsError bool
	}
	Error         struct{ Code int }
	InputRequests map[string]struct {
		Method string
		Params struct{ Message string }
	}
	Capabilities struct{ Extensions map[string]any }
}

// ask makes a request. params are members of an object, without _meta.
func (c taskClient) ask(t *testing.T, method, name, params string) (a taskAnswer, code int) {
	t.Helper()
	meta := fmt.Sprintf(`"_meta":{%q:%q,%q:{"name":"tasker","version":"1"},%q:%s}`,
		mcp.MetaKeyProtocolVersion, sessionless, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities, c.capabilities)
	if params != "" {
		params = "," + params
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, meta, params)
	res := post(t, c.url, body, map[string]string{"Authorization": "Bearer " + c.who, headerVersion: sessionless, "Mcp-Method": method, "Mcp-Name": name})
	data := testkit.Must(io.ReadAll(res.Body))(t)
	if _, event, ok := bytes.Cut(data, []byte("data: ")); ok {
		data = event
	}
	var m struct {
		Result json.RawMessage
		Error  struct{ Code int }
	}
	if err := json.Unmarshal(bytes.TrimSpace(data), &m); err != nil {
		t.Fatalf("%s = %s (%v)", method, data, err)
	}
	if m.Result != nil {
		if err := json.Unmarshal(m.Result, &a); err != nil {
			t.Fatalf("%s = %s (%v)", method, m.Result, err)
		}
	}
	return a, m.Error.Code
}

// until asks about a task until it has a status.
func (c taskClient) until(t *testing.T, id, status string) taskAnswer {
	t.Helper()
	for {
		a, code := c.ask(t, "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
		if code != 0 {
			t.Fatalf("tasks/get = error %d", code)
		}
		if a.Status == status {
			return a
		}
		if a.Status != taskWorking && a.Status != taskAsks {
			t.Fatalf("tasks/get = %+v, want status %s", a, status)
		}
	}
}

// tasking returns a server whose calls become tasks after a moment, and its
// address.
func tasking(t *testing.T, after time.Duration, fill func(*bench)) (*bench, string) {
	b := newBench(t, func(b *bench) {
		office(b)
		if fill != nil {
			fill(b)
		}
	})
	cfg := b.config()
	cfg.Surface, cfg.TaskAfter = direct, after
	cfg.Wait = func(ctx context.Context, ticket string) error {
		_, err := b.desk.Wait(ctx, ticket)
		return err
	}
	s := New(cfg)
	t.Cleanup(func() { s.Close() })
	return b, web(t, s).URL
}

// TestPendingApprovalIsATask: a call that waits for a person elsewhere is a task,
// and ends when the person has answered.
func TestPendingApprovalIsATask(t *testing.T) {
	b, url := tasking(t, time.Hour, nil)
	c := taskClient{url, "ada", knowsTasks}
	if a, _ := c.ask(t, "server/discover", "", ""); a.Capabilities.Extensions[tasksExtension] == nil {
		t.Errorf("server/discover = %+v, want the extension", a)
	}
	if a, _ := c.ask(t, "tools/call", "greet", `"name":"greet","arguments":{"name":"you"}`); a.ResultType != "complete" || a.Content[0].Text != "hello you" {
		t.Errorf("a call that needs nothing = %+v, want its result", a)
	}
	for effect, want := range map[approval.Effect]string{approval.Yes: "hello " + string(approval.Yes), approval.No: "denied request"} {
		a, _ := c.ask(t, "tools/call", "write", fmt.Sprintf(`"name":"write","arguments":{"name":%q}`, effect))
		if a.ResultType != "task" || a.TaskID == "" || a.Status != taskWorking || a.TTL <= 0 || a.Poll <= 0 {
			t.Fatalf("a call that needs approval = %+v, want a task", a)
		}
		_, after, ok := strings.Cut(a.StatusMessage, "ken approve grant ")
		if !ok {
			t.Fatalf("status message = %q, want where to approve", a.StatusMessage)
		}
		ticket := strings.TrimSuffix(strings.Fields(after)[0], ".")
		if got := c.until(t, a.TaskID, taskWorking); !strings.Contains(got.StatusMessage, ticket) || got.ResultType != "complete" {
			t.Errorf("tasks/get = %+v, want that it waits", got)
		}
		if _, err := b.desk.Settle(t.Context(), ticket, approval.Answer{By: ada, Effect: effect, Scope: approval.Once}); err != nil {
			t.Fatal(err)
		}
		got := c.until(t, a.TaskID, taskCompleted)
		if got.Result.IsError != (effect == approval.No) || !strings.Contains(got.Result.Content[0].Text, want) {
			t.Errorf("the answer %s = %+v, want %q", effect, got.Result, want)
		}
	}
	testkit.Equal(t, "calls were made", len(b.calls), 2)
}

// TestTasksAreTheirOwners: only the principal who made a call may ask about its
// task, with a request that declares the extension; and without it nobody gets
// one.
func TestTasksAreTheirOwners(t *testing.T) {
	_, url := tasking(t, time.Hour, nil)
	c := taskClient{url, "ada", knowsTasks}
	if a, _ := (taskClient{url, "ada", `{}`}).ask(t, "tools/call", "write", `"name":"write","arguments":{"name":"x"}`); a.ResultType != "complete" || !a.IsError {
		t.Errorf("a client without the extension got %+v, want a result", a)
	}
	a, _ := c.ask(t, "tools/call", "write", `"name":"write","arguments":{"name":"x"}`)
	about := fmt.Sprintf(`"taskId":%q`, a.TaskID)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if _, code := (taskClient{url, "eve", knowsTasks}).ask(t, method, a.TaskID, about); code != -32602 {
			t.Errorf("%s of another = error %d, want -32602", method, code)
		}
		if _, code := (taskClient{url, "ada", `{}`}).ask(t, method, a.TaskID, about); code != mcp.CodeMissingRequiredClientCapabilities {
			t.Errorf("%s without the extension = error %d, want %d", method, code, mcp.CodeMissingRequiredClientCapabilities)
		}
		if _, code := c.ask(t, method, "none", `"taskId":"none"`); code != -32602 {
			t.Errorf("%s of no task = error %d, want -32602", method, code)
		}
	}
	if a, code := c.ask(t, "tasks/cancel", a.TaskID, about); code != 0 || a.ResultType != "complete" {
		t.Errorf("tasks/cancel = %+v, error %d", a, code)
	}
	if got, _ := c.ask(t, "tasks/get", a.TaskID, about); got.Status != taskCancelled {
		t.Errorf("tasks/get after tasks/cancel = %+v, want cancelled", got)
	}
}

// TestLongCallIsATask: a call that goes on becomes a task, asks through it, and
// can be cancelled.
func TestLongCallIsATask(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	_, url := tasking(t, time.Millisecond, func(b *bench) {
		b.tool("tool:wait", nameSchema, quiet, func(ctx context.Context, _ capability.Call) (capability.Result, error) {
			close(started)
			<-ctx.Done()
			close(ended)
			return capability.Result{}, ctx.Err()
		})
		b.tool("tool:asks", nameSchema, quiet, func(ctx context.Context, call capability.Call) (capability.Result, error) {
			select {
			case <-time.After(20 * time.Millisecond): // the client has its task by then, or is asked at once
			case <-ctx.Done():
			}
			if given := call.Answers["who"]; given != nil {
				return capability.Result{Parts: []capability.Part{{Text: string(given)}}}, nil
			}
			return capability.Result{}, &capability.Inquiry{State: "s", Requests: map[string]json.RawMessage{
				"who": json.RawMessage(`{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`),
			}}
		})
	})
	c := taskClient{url, "ada", `{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`}
	a, _ := c.ask(t, "tools/call", "asks", `"name":"asks","arguments":{"name":"x"}`)
	if a.ResultType != "task" {
		t.Fatalf("a long call = %+v, want a task", a)
	}
	asks := c.until(t, a.TaskID, taskAsks)
	for key, r := range asks.InputRequests {
		if r.Method != "elicitation/create" || !strings.Contains(r.Params.Message, "Who?") {
			t.Errorf("it asks %+v, want the question", r)
		}
		c.ask(t, "tasks/update", a.TaskID, fmt.Sprintf(`"taskId":%q,"inputResponses":{"other":{"action":"accept"}}`, a.TaskID))
		c.until(t, a.TaskID, taskAsks) // an answer to nothing is ignored
		c.ask(t, "tasks/update", a.TaskID, fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"Luca"}}}`, a.TaskID, key))
	}
	if got := c.until(t, a.TaskID, taskCompleted); len(got.Result.Content) != 1 || !strings.Contains(got.Result.Content[0].Text, "Luca") {
		t.Errorf("the result = %+v, want the answer", got.Result)
	}
	last, _ := c.ask(t, "tools/call", "wait", `"name":"wait","arguments":{"name":"x"}`)
	if last.ResultType != "task" {
		t.Fatalf("a long call = %+v, want a task", last)
	}
	<-started
	if _, code := c.ask(t, "tasks/cancel", last.TaskID, fmt.Sprintf(`"taskId":%q`, last.TaskID)); code != 0 {
		t.Errorf("tasks/cancel = error %d", code)
	}
	<-ended // its call
	c.until(t, last.TaskID, taskCancelled)
}

// TestTasksAreBounded: a principal has only so many tasks, and one that never ends
// is ended when its time is over.
func TestTasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tasks{}
		ended := 0
		for range maxTasks {
			if s.begin("ada", func() { ended++ }) == nil {
				t.Fatal("begin() = nil, want a task")
			}
		}
		if s.begin("ada", func() {}) != nil {
			t.Errorf("begin() = a task after %d, want none", maxTasks)
		}
		if s.begin("eve", func() { ended++ }) == nil {
			t.Error("begin() of another = nil, want a task")
		}
		time.Sleep(taskLife + time.Second)
		if s.begin("ada", func() {}) == nil || ended != maxTasks+1 {
			t.Errorf("after %v %d tasks were ended, want %d and room for another", taskLife, ended, maxTasks+1)
		}
	})
}
