//lint:file-ignore SA1019 sampling, roots and logging are deprecated and in use

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit/mcptest/skills"
)

// What the server offers. The features compare what arrives with these.
const (
	instructions = "Call book_visit before any other tool of this server."
	inputSchema  = `{"type":"object","properties":{"when":{"type":"string","format":"date-time","description":"Start of the visit"},` +
		`"size":{"type":"integer","minimum":1,"maximum":9,"default":2},"place":{"$ref":"#/$defs/place"},"tags":{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true}},` +
		`"required":["when"],"additionalProperties":false,"$defs":{"place":{"type":"object","properties":{"city":{"type":"string","pattern":"^[A-Z]"}}}}}`
	outputSchema = `{"type":"object","properties":{"booked":{"type":"boolean"},"number":{"type":"integer"}},"required":["booked"]}`
	anyInput     = `{"type":"object"}`
	uiURI        = "ui://site/book.html"
	uiMIME       = "text/html;profile=mcp-app"
	uiText       = "<!doctype html><title>Book</title><p>Book a visit</p>"
	uiExtension  = "io.modelcontextprotocol/ui"
	noteURI      = "site://notes/today"
	pictureURI   = "site://picture"
	badCode      = -32077
)

func icons() []mcp.Icon {
	return []mcp.Icon{{Source: "https://example.com/site.png", MIMEType: "image/png", Sizes: []string{"48x48"}, Theme: "dark"}}
}

func toolMeta() mcp.Meta {
	return mcp.Meta{"com.example/group": "visits"}
}

// pageMeta is of a tool that has a page (MCP Apps).
func pageMeta(visibility ...any) mcp.Meta {
	return mcp.Meta{"ui": map[string]any{"resourceUri": uiURI, "visibility": visibility}}
}

func itemMeta() mcp.Meta { return mcp.Meta{"com.example/item": "seven"} }

func partAnnotations() *mcp.Annotations {
	return &mcp.Annotations{Audience: []mcp.Role{"user"}, Priority: 0.5, LastModified: "2026-01-02T03:04:05Z"}
}

func picture() []byte { return []byte("\x89PNG\r\n\x1a\nnot really") }

// A site is the server, and what it saw of its client.
type site struct {
	server    *mcp.Server
	cancelled atomic.Int64
	removed   atomic.Bool
}

func newSite(versions []string) *site {
	s := &site{}
	opts := &mcp.ServerOptions{
		Instructions: instructions, PageSize: 7, CompletionHandler: complete, SupportedProtocolVersions: versions,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
	skills.Declare(opts)
	s.server = mcp.NewServer(&mcp.Implementation{Name: "site", Title: "The site", Version: "1"}, opts)
	yes, no := true, false
	s.server.AddTool(&mcp.Tool{
		Name: "book_visit", Title: "Book a visit", Description: "Books a visit to the site.",
		InputSchema: json.RawMessage(inputSchema), OutputSchema: json.RawMessage(outputSchema), Icons: icons(), Meta: toolMeta(),
		Annotations: &mcp.ToolAnnotations{Title: "Booking", ReadOnlyHint: false, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &yes},
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "booked"}}, StructuredContent: map[string]any{"booked": true, "number": 12}}, nil
	})
	s.server.AddTool(&mcp.Tool{Name: "list_visits", Description: "Lists visits.", InputSchema: json.RawMessage(anyInput),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no}}, contents)
	s.server.AddTool(&mcp.Tool{Name: "show_map", Description: "Shows a map of the site.", InputSchema: json.RawMessage(anyInput), Meta: pageMeta("model", "app")}, echo)
	s.server.AddTool(&mcp.Tool{Name: "refresh_map", Description: "Refreshes the map.", InputSchema: json.RawMessage(anyInput), Meta: pageMeta("app")}, echo)
	for name, handler := range map[string]mcp.ToolHandler{
		"echo": echo, "seen": s.seen, "fail": fail, "break": breakOff, "steps": steps, "log": logLine, "wait": s.wait, "empty": empty,
		"change_notes": s.changeNotes, "remove_prompt": s.removePrompt, "large": large,
		"ask_form": ask("form", &mcp.ElicitParams{Mode: "form", Message: "Which room?", RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"room":{"type":"string","title":"Room","enum":["red","blue"]},"beds":{"type":"integer","minimum":1}},"required":["room"]}`)}),
		"ask_url":   ask("url", &mcp.ElicitParams{Mode: "url", Message: "Sign in first", URL: "https://example.com/sign-in", ElicitationID: "e-1"}),
		"ask_roots": ask("roots", &mcp.ListRootsParams{}),
		"ask_model": ask("model", &mcp.CreateMessageParams{
			MaxTokens: 77, SystemPrompt: "Be brief.", Temperature: 0.25, StopSequences: []string{"END"}, Metadata: map[string]any{"k": "v"},
			ModelPreferences: &mcp.ModelPreferences{CostPriority: 0.5, Hints: []*mcp.ModelHint{{Name: "small"}}},
			Messages:         []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Name a colour."}}},
		}),
	} {
		s.server.AddTool(&mcp.Tool{Name: name, Description: "Tests the feature " + name + ".", InputSchema: json.RawMessage(anyInput)}, handler)
	}
	s.addResources()
	s.addPrompts()
	if err := errors.Join(s.addTasks(), skills.Add(s.server, func() []skills.Skill { return []skills.Skill{siteSkill()} })); err != nil {
		panic(err) // its methods are none of the protocol itself
	}
	return s
}

// siteSkill is the skill that the site has.
func siteSkill() skills.Skill {
	return skills.Skill{Dir: "skill://site/guided-tour", Description: "Lead guests through the site.", Files: map[string]string{
		"references/rooms.md": "# Rooms\n\nRed, then blue.\n",
	}}
}

func textResult(format string, args ...any) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil
}

// contents returns a part of every kind.
func contents(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	size := int64(1234)
	return &mcp.CallToolResult{
		Meta: mcp.Meta{"com.example/result": "r"},
		Content: []mcp.Content{
			&mcp.TextContent{Text: "first", Annotations: partAnnotations(), Meta: itemMeta()},
			&mcp.ImageContent{Data: picture(), MIMEType: "image/png"},
			&mcp.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: noteURI, MIMEType: "text/markdown", Text: "# Today", Meta: itemMeta()}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: pictureURI, MIMEType: "image/png", Blob: picture()}},
			&mcp.ResourceLink{URI: noteURI, Name: "today", Title: "Today", Description: "Notes of today", MIMEType: "text/markdown",
				Size: &size, Annotations: partAnnotations(), Icons: icons(), Meta: itemMeta()},
			&mcp.TextContent{Text: "last"},
		},
	}, nil
}

func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return textResult("%s", req.Params.Arguments)
}

// seen returns what the server knows of its client and of this request.
func (s *site) seen(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	out := map[string]any{"meta": req.Params.Meta, "cancelled": s.cancelled.Load()}
	if p := req.Session.InitializeParams(); p != nil && p.Capabilities != nil {
		out["extensions"] = p.Capabilities.Extensions
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return textResult("%s", text)
}

func fail(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	res, err := textResult("the site is closed")
	res.IsError = true
	return res, err
}

func breakOff(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, &jsonrpc.Error{Code: badCode, Message: "the site burnt down", Data: json.RawMessage(`{"floor":3}`)}
}

func steps(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	for i := range 3 {
		if token == nil {
			break
		}
		if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(i + 1), Total: 3, Message: fmt.Sprint("step ", i+1)}); err != nil {
			return nil, err
		}
	}
	return textResult("three steps")
}

func logLine(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "gate", Data: map[string]any{"open": true}}); err != nil {
		return nil, err
	}
	return textResult("logged")
}

// wait ends when its client cancels, or after a while.
func (s *site) wait(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	select {
	case <-ctx.Done():
		s.cancelled.Add(1)
	case <-time.After(patience):
	}
	return textResult("waited")
}

func empty(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
}

func large(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return textResult("%s", strings.Repeat("A line of a large result.\n", 2000))
}

// ask asks its client one thing and returns the whole answer.
func ask(key string, what mcp.InputRequest) mcp.ToolHandler {
	return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses[key]
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: what}}, nil
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		return textResult("%s", text)
	}
}

func (s *site) changeNotes(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := s.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: noteURI}); err != nil {
		return nil, err
	}
	return textResult("changed")
}

func (s *site) removePrompt(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if s.removed.CompareAndSwap(false, true) {
		s.server.RemovePrompts("farewell")
	}
	return textResult("removed")
}

func (s *site) addResources() {
	read := func(c *mcp.ResourceContents) mcp.ResourceHandler {
		return func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
		}
	}
	s.server.AddResource(&mcp.Resource{URI: noteURI, Name: "today", Title: "Today", Description: "Notes of today", MIMEType: "text/markdown",
		Size: 7, Annotations: partAnnotations(), Icons: icons(), Meta: itemMeta()},
		read(&mcp.ResourceContents{URI: noteURI, MIMEType: "text/markdown", Text: "# Today", Meta: itemMeta()}))
	s.server.AddResource(&mcp.Resource{URI: pictureURI, Name: "picture", MIMEType: "image/png"},
		read(&mcp.ResourceContents{URI: pictureURI, MIMEType: "image/png", Blob: picture()}))
	s.server.AddResource(&mcp.Resource{URI: uiURI, Name: "book", MIMEType: uiMIME, Meta: mcp.Meta{"ui": map[string]any{"prefersBorder": true}}},
		read(&mcp.ResourceContents{URI: uiURI, MIMEType: uiMIME, Text: uiText, Meta: uiPolicy()}))
	s.server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "site://room/{room}", Name: "room", Title: "A room", Description: "One room",
		MIMEType: "text/plain", Annotations: partAnnotations(), Icons: icons(), Meta: itemMeta()},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			name := strings.TrimPrefix(req.Params.URI, "site://room/")
			if name == "none" {
				return nil, mcp.ResourceNotFoundError(req.Params.URI)
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: "room " + name}}}, nil
		})
}

func uiPolicy() mcp.Meta {
	return mcp.Meta{"ui": map[string]any{"csp": map[string]any{"connectDomains": []any{}}}}
}

func (s *site) addPrompts() {
	s.server.AddPrompt(&mcp.Prompt{Name: "welcome", Title: "Welcome", Description: "Welcomes a guest", Icons: icons(), Meta: itemMeta(),
		Arguments: []*mcp.PromptArgument{{Name: "guest", Title: "Guest", Description: "Who comes", Required: true}, {Name: "room"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "Welcomes a guest", Meta: itemMeta(), Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "Welcome " + req.Params.Arguments["guest"]}},
				{Role: "assistant", Content: &mcp.ImageContent{Data: picture(), MIMEType: "image/png"}},
				{Role: "user", Content: &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: noteURI, MIMEType: "text/markdown", Text: "# Today"}}},
			}}, nil
		})
	s.server.AddPrompt(&mcp.Prompt{Name: "farewell"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	out := &mcp.CompleteResult{}
	out.Completion.Values = []string{req.Params.Ref.Name + req.Params.Ref.URI + ":" + req.Params.Argument.Name + "=" + req.Params.Argument.Value + "!"}
	if c := req.Params.Context; c != nil {
		out.Completion.Values = append(out.Completion.Values, c.Arguments["guest"])
	}
	out.Completion.Total = 42
	out.Completion.HasMore = true
	return out, nil
}
