//lint:file-ignore SA1019 sampling, roots and logging are deprecated and in use

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit/mcptest/skills"
)

// patience bounds one feature.
const patience = 20 * time.Second

// A target is a connection to the site, direct or through a gateway, and all
// that arrived on it without being asked for.
type target struct {
	session *mcp.ClientSession
	tools   map[string]*mcp.Tool // by the site's names
	named   map[string]string    // the site's names to those that this connection has
	bridge  string               // the prefix of the site's tools at a gateway with one tool for all calls

	watcher taskWatcher

	mu     sync.Mutex
	change *sync.Cond
	events []string
}

func (t *target) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, fmt.Sprintf(format, args...))
	t.change.Broadcast()
}

// wait returns when every one of the events has arrived since mark.
func (t *target) wait(ctx context.Context, mark int, events ...string) error {
	stop := context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.change.Broadcast()
	})
	defer stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		got := strings.Join(t.events[mark:], "\n")
		missing := ""
		for _, e := range events {
			if !strings.Contains(got, e) {
				missing = e
			}
		}
		if missing == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%q did not arrive; these did: %q", missing, got)
		}
		t.change.Wait()
	}
}

func (t *target) mark() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.events)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// connect starts a command that speaks MCP on its standard input and output.
func connect(ctx context.Context, cmd *exec.Cmd, stderr io.Writer) (*target, error) {
	t := &target{}
	t.change = sync.NewCond(&t.mu)
	client := mcp.NewClient(&mcp.Implementation{Name: "passthrough", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{ListChanged: true},
			Sampling:    &mcp.SamplingCapabilities{},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			Extensions:  map[string]any{uiExtension: map[string]any{"mimeTypes": []any{uiMIME}}, tasksExtension: map[string]any{}, skills.Extension: map[string]any{}},
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			t.add("elicit %s", asJSON(req.Params))
			if req.Params.Mode == "url" {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"room": "blue", "beds": 2}}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			t.add("sample %s", asJSON(req.Params))
			return &mcp.CreateMessageResult{Model: "tiny", Role: "assistant", StopReason: "endTurn", Content: &mcp.TextContent{Text: "green"}}, nil
		},
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { t.add("prompts changed") },
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			t.add("updated %s", req.Params.URI)
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { t.add("log %s", asJSON(req.Params)) },
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			t.add("progress %v of %v %s", req.Params.Progress, req.Params.Total, req.Params.Message)
		},
	})
	if err := errors.Join(knowTasks(client), skills.Know(client)); err != nil {
		return nil, err
	}
	client.AddReceivingMiddleware(t.acknowledged)
	client.AddRoots(&mcp.Root{URI: "file:///home/guest", Name: "guest"})
	cmd.Stderr = stderr
	session, err := client.Connect(ctx, &mcp.LoggingTransport{Transport: &mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second}, Writer: &t.watcher}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cmd, err)
	}
	t.session = session
	if err := t.list(ctx); err != nil {
		session.Close()
		return nil, err
	}
	_ = session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}) // newer sessions ask in each request
	return t, nil
}

// acknowledged notes the resources that a subscription is in force for. Newer
// sessions return from Subscribe before that.
func (t *target) acknowledged(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.SubscriptionsAcknowledgedParams); ok {
			for _, uri := range p.Notifications.ResourceSubscriptions {
				t.add("subscribed %s", uri)
			}
		}
		return next(ctx, method, req)
	}
}

// list finds the site's tools by the ends of their names: gateways put others
// before them.
func (t *target) list(ctx context.Context) error {
	t.tools, t.named = map[string]*mcp.Tool{}, map[string]string{}
	for tool, err := range t.session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("list tools: %w", err)
		}
		if tool.Name == "invoke_capability" {
			t.bridge = "mcp:site/"
		}
		for _, name := range siteTools() {
			if before, ok := strings.CutSuffix(tool.Name, name); ok && (before == "" || strings.ContainsAny(before[len(before)-1:], "_-.")) {
				if t.tools[name] == nil || len(tool.Name) < len(t.named[name]) {
					t.tools[name], t.named[name] = tool, tool.Name
				}
			}
		}
	}
	return nil
}

func siteTools() []string {
	return []string{"book_visit", "list_visits", "echo", "seen", "fail", "break", "steps", "log", "wait", "empty", "change_notes", "remove_prompt",
		"large", "ask_form", "ask_url", "ask_roots", "ask_model", "task_ends", "task_asks", "task_fails", "show_map"}
}

// call calls a tool of the site. arguments are JSON.
func (t *target) call(ctx context.Context, name, arguments string, meta mcp.Meta) (*mcp.CallToolResult, error) {
	p := &mcp.CallToolParams{Name: t.named[name], Arguments: json.RawMessage(arguments), Meta: meta}
	if p.Name == "" {
		if t.bridge == "" {
			return nil, fmt.Errorf("tool %s is not listed", name)
		}
		p.Name = "invoke_capability"
		p.Arguments = json.RawMessage(fmt.Sprintf(`{"capability":%q,"arguments":%s}`, t.bridge+name, arguments))
	}
	return t.session.CallTool(ctx, p)
}

// describe returns what a gateway with one tool for all calls says of a tool.
func (t *target) describe(ctx context.Context, name string) (map[string]json.RawMessage, error) {
	res, err := t.session.CallTool(ctx, &mcp.CallToolParams{Name: "describe_capability", Arguments: map[string]any{"id": t.bridge + name}})
	if err != nil {
		return nil, err
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal([]byte(asJSON(res.StructuredContent)), &out); err != nil {
		return nil, err
	}
	return out, nil
}
