//lint:file-ignore SA1019 sampling, roots and logging are deprecated and in use

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit/mcptest/skills"
)

// A feature is one thing of the protocol that a client may rely on. check
// returns why it does not arrive.
type feature struct {
	part, name string
	check      func(ctx context.Context, t *target) error

	// bridge says why a gateway whose clients have one tool for all calls cannot
	// pass it on; empty if it can.
	bridge string
}

// A set gathers features.
type set []feature

func (s *set) add(part, name string, check func(context.Context, *target) error) {
	*s = append(*s, feature{part: part, name: name, check: check})
}

func features() []feature {
	var s set
	s.toolList()
	s.begin()
	s.parts()
	s.results()
	s.calls()
	s.longCalls()
	s.questions()
	s.resources()
	s.skills()
	s.prompts()
	s.completions()
	return s
}

func (s *set) toolList() {
	const listOnly = "clients read it from the list of tools, and a bridge does not list them; a tool that `mcp.pinned` names is listed with it"
	tool := func(name, key string, of func(*mcp.Tool) any, want any) {
		s.add("tools/list", name, func(ctx context.Context, t *target) error {
			if found := t.tools["book_visit"]; found != nil {
				return same(of(found), want)
			}
			if t.bridge == "" {
				return errors.New("tool is not listed")
			}
			said, err := t.describe(ctx, "book_visit")
			if err != nil {
				return err
			}
			return same(said[key], want)
		})
		if key == "" {
			(*s)[len(*s)-1].bridge = listOnly
		}
	}
	tool("title", "title", func(t *mcp.Tool) any { return t.Title }, "Book a visit")
	tool("description", "description", func(t *mcp.Tool) any { return t.Description }, "Books a visit to the site.")
	tool("input schema, as written", "inputSchema", func(t *mcp.Tool) any { return t.InputSchema }, json.RawMessage(inputSchema))
	tool("output schema", "outputSchema", func(t *mcp.Tool) any { return t.OutputSchema }, json.RawMessage(outputSchema))
	s.add("tools/list", "hints (read-only, destructive, idempotent, open world)", func(ctx context.Context, t *target) error {
		want := map[string]any{"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
		if found := t.tools["list_visits"]; found != nil {
			return same(found.Annotations, want)
		}
		said, err := t.describe(ctx, "list_visits")
		if err != nil {
			return err
		}
		return same(said["annotations"], want)
	})
	tool("annotations.title", "", func(t *mcp.Tool) any { return t.Annotations.Title }, "Booking")
	tool("icons", "", func(t *mcp.Tool) any { return t.Icons }, icons())
	tool("_meta", "", func(t *mcp.Tool) any { return t.Meta["com.example/group"] }, "visits")
	s.add("tools/list", "_meta.ui of a tool with a page (MCP Apps)", func(_ context.Context, t *target) error {
		if t.tools["show_map"] == nil {
			return errors.New("tool is not listed")
		}
		return same(t.tools["show_map"].Meta["ui"], pageMeta("model", "app")["ui"])
	})
	s.add("tools/list", "every page", func(ctx context.Context, t *target) error {
		for _, name := range siteTools() {
			if t.tools[name] != nil {
				continue
			}
			if t.bridge == "" {
				return fmt.Errorf("tool %s is not listed", name)
			}
			if _, err := t.describe(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *set) begin() {
	s.add("initialize", "instructions", func(_ context.Context, t *target) error {
		return contains(t.session.InitializeResult().Instructions, instructions)
	})
	s.add("initialize", "extensions of the client reach the server", func(ctx context.Context, t *target) error {
		return seen(ctx, t, "extensions", func(v any) error {
			m, _ := v.(map[string]any)
			return same(m[uiExtension], map[string]any{"mimeTypes": []any{uiMIME}})
		}, nil)
	})
	s.add("ping", "ping", func(ctx context.Context, t *target) error {
		err := t.session.Ping(ctx, nil)
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound { // newer sessions have none
			return nil
		}
		return err
	})
}

func (s *set) parts() {
	part := func(name string, i int, want mcp.Content) {
		s.add("tools/call", name, func(ctx context.Context, t *target) error {
			res, err := t.call(ctx, "list_visits", `{}`, nil)
			if err != nil {
				return err
			}
			if len(res.Content) <= i {
				return fmt.Errorf("%d parts: %s", len(res.Content), asJSON(res.Content))
			}
			return same(res.Content[i], want)
		})
	}
	size := int64(1234)
	part("text with annotations and _meta", 0, &mcp.TextContent{Text: "first", Annotations: partAnnotations(), Meta: itemMeta()})
	part("image", 1, &mcp.ImageContent{Data: picture(), MIMEType: "image/png"})
	part("audio", 2, &mcp.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"})
	part("embedded text resource with _meta", 3, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: noteURI, MIMEType: "text/markdown", Text: "# Today", Meta: itemMeta()}})
	part("embedded binary resource", 4, &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: pictureURI, MIMEType: "image/png", Blob: picture()}})
	part("resource link with all its members", 5, &mcp.ResourceLink{URI: noteURI, Name: "today", Title: "Today", Description: "Notes of today",
		MIMEType: "text/markdown", Size: &size, Annotations: partAnnotations(), Icons: icons(), Meta: itemMeta()})
	part("order of the parts", 6, &mcp.TextContent{Text: "last"})
}

func (s *set) results() {
	result := func(name, tool, arguments string, check func(*mcp.CallToolResult) error) {
		s.add("tools/call", name, func(ctx context.Context, t *target) error {
			res, err := t.call(ctx, tool, arguments, nil)
			if err != nil {
				return err
			}
			return check(res)
		})
	}
	result("_meta of the result", "list_visits", `{}`, func(r *mcp.CallToolResult) error { return same(r.Meta["com.example/result"], "r") })
	result("structured content", "book_visit", `{"when":"2026-01-02T03:04:05Z"}`, func(r *mcp.CallToolResult) error {
		return same(r.StructuredContent, map[string]any{"booked": true, "number": 12})
	})
	result("text beside structured content", "book_visit", `{"when":"2026-01-02T03:04:05Z"}`, func(r *mcp.CallToolResult) error { return contains(text(r), "booked") })
	result("failure of the tool", "fail", `{}`, func(r *mcp.CallToolResult) error {
		if !r.IsError {
			return errors.New("isError is not set")
		}
		return contains(text(r), "the site is closed")
	})
	result("result without content", "empty", `{}`, func(r *mcp.CallToolResult) error { return same(r.IsError, false) })
	result("numbers beyond 2^53 in arguments", "echo", `{"n":9007199254740993}`, func(r *mcp.CallToolResult) error { return contains(text(r), "9007199254740993") })
	result("every character in arguments and results", "echo", `{"s":"Zürich 東京 🦉 \"\\ \u0001"}`, func(r *mcp.CallToolResult) error {
		var got struct{ S string }
		if err := json.Unmarshal([]byte(text(r)), &got); err != nil {
			return err
		}
		return same(got.S, "Zürich 東京 🦉 \"\\ \x01")
	})
	result("result of 50 kB, whole", "large", `{}`, func(r *mcp.CallToolResult) error {
		if n := strings.Count(text(r), "A line of a large result."); n != 2000 {
			return fmt.Errorf("%d of 2000 lines", n)
		}
		return nil
	})
}

func (s *set) calls() {
	s.add("tools/call", "error of the server, with its code and data", func(ctx context.Context, t *target) error {
		res, err := t.call(ctx, "break", `{}`, nil)
		if err == nil {
			return fmt.Errorf("a result: %s", asJSON(res))
		}
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok {
			return err
		}
		if err := contains(e.Message, "the site burnt down"); err != nil {
			return err
		}
		return same([]any{e.Code, e.Data}, []any{badCode, map[string]any{"floor": 3}})
	})
	s.add("tools/call", "_meta of the request reaches the server", func(ctx context.Context, t *target) error {
		return seen(ctx, t, "meta", func(v any) error { return same(v.(map[string]any)["com.example/ask"], "why") }, mcp.Meta{"com.example/ask": "why"})
	})
	s.add("tools/call", "trace context (traceparent) reaches the server", func(ctx context.Context, t *target) error {
		const trace = "0af7651916cd43dd8448eb211c80319c"
		return seen(ctx, t, "meta", func(v any) error {
			got, _ := v.(map[string]any)["traceparent"].(string)
			return contains(got, trace)
		}, mcp.Meta{"traceparent": "00-" + trace + "-b7ad6b7169203331-01"})
	})
	s.add("tools/call", "progress with total and message", func(ctx context.Context, t *target) error {
		mark := t.mark()
		if _, err := t.call(ctx, "steps", `{}`, mcp.Meta{"progressToken": "p-1"}); err != nil {
			return err
		}
		return t.wait(ctx, mark, "progress 1 of 3 step 1", "progress 3 of 3 step 3")
	})
	s.add("tools/call", "log lines of the server", func(ctx context.Context, t *target) error {
		mark := t.mark()
		if _, err := t.call(ctx, "log", `{}`, mcp.Meta{mcp.MetaKeyLogLevel: "info"}); err != nil {
			return err
		}
		return t.wait(ctx, mark, `{"open":true}`, `"warning"`)
	})
	s.add("tools/call", "cancelling reaches the server", func(ctx context.Context, t *target) error {
		brief, cancel := context.WithTimeout(ctx, patience/20)
		defer cancel()
		if _, err := t.call(brief, "wait", `{}`, nil); err == nil {
			return errors.New("the call was not cancelled")
		}
		for {
			err := seen(ctx, t, "cancelled", func(v any) error { return same(v, 1) }, nil)
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
}

func (s *set) questions() {
	asks := func(name, tool string, arrived []string, check func(map[string]any) error) {
		s.add("server asks", name, func(ctx context.Context, t *target) error {
			mark := t.mark()
			res, err := t.call(ctx, tool, `{}`, nil)
			if err != nil {
				return err
			}
			if err := t.wait(ctx, mark, arrived...); err != nil {
				return err
			}
			var answer map[string]any
			if err := json.Unmarshal([]byte(text(res)), &answer); err != nil {
				return fmt.Errorf("%s: %w", text(res), err)
			}
			return check(answer)
		})
	}
	asks("elicitation: form and answer, as given", "ask_form", []string{"Which room?", `"enum":["red","blue"]`, `"minimum":1`}, func(a map[string]any) error {
		return same([]any{a["action"], a["content"]}, []any{"accept", map[string]any{"room": "blue", "beds": 2}})
	})
	asks("elicitation: URL, declined", "ask_url", []string{"https://example.com/sign-in"}, func(a map[string]any) error { return same(a["action"], "decline") })
	asks("sampling: request and answer", "ask_model", []string{"Name a colour.", `"maxTokens":77`}, func(a map[string]any) error { return contains(asJSON(a), "green") })
	asks("sampling: all parameters", "ask_model", []string{"Be brief.", `"temperature":0.25`, `"stopSequences":["END"]`, `"metadata":{"k":"v"}`, `"costPriority":0.5`, `"small"`},
		func(a map[string]any) error { return same(a["model"], "tiny") })
	asks("roots of the client", "ask_roots", nil, func(a map[string]any) error { return contains(asJSON(a), "file:///home/guest") })
}

// skills are the requests of the extension for skills (SEP-2640).
func (s *set) skills() {
	want := siteSkill()
	s.add("skills/list", "entry with frontmatter and digests (SEP-2640)", func(ctx context.Context, t *target) error {
		var got struct{ Skills []map[string]any }
		if err := skills.Ask(ctx, t.session, "skills/list", "", &got); err != nil {
			return err
		}
		for _, e := range got.Skills {
			if e["uri"] == want.Dir+"/SKILL.md" {
				return same(e, want.Entry())
			}
		}
		return errors.New("the skill is not listed by its URI")
	})
	s.add("skills/get", "one entry", func(ctx context.Context, t *target) error {
		var got struct{ Skill map[string]any }
		if err := skills.Ask(ctx, t.session, "skills/get", want.Dir+"/SKILL.md", &got); err != nil {
			return err
		}
		return same(got.Skill, want.Entry())
	})
	s.add("resources/directory/read", "folder of a skill", func(ctx context.Context, t *target) error {
		var got struct{ Resources []*mcp.Resource }
		if err := skills.Ask(ctx, t.session, "resources/directory/read", want.Dir, &got); err != nil {
			return err
		}
		var names []string
		for _, r := range got.Resources {
			names = append(names, r.Name+" "+r.MIMEType)
		}
		slices.Sort(names)
		return same(names, []string{"SKILL.md text/markdown", "references inode/directory"})
	})
	for _, name := range []string{"SKILL.md", "references/rooms.md"} {
		text := want.Files[name]
		if name == "SKILL.md" {
			text = want.Main()
		}
		s.add("resources/read", "file of a skill: "+name, func(ctx context.Context, t *target) error {
			res, err := t.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: want.Dir + "/" + name})
			if err != nil {
				return err
			}
			return same(res.Contents, []*mcp.ResourceContents{{URI: want.Dir + "/" + name, MIMEType: "text/markdown", Text: text}})
		})
	}
}

func (s *set) resources() {
	resource := func(name string, of func(*mcp.Resource) any, want any) {
		s.add("resources/list", name, func(ctx context.Context, t *target) error {
			for r, err := range t.session.Resources(ctx, nil) {
				if err != nil {
					return err
				}
				if r.URI == noteURI {
					return same(of(r), want)
				}
			}
			return errors.New("the resource is not listed by its URI")
		})
	}
	resource("title, description, type", func(r *mcp.Resource) any { return []string{r.Title, r.Description, r.MIMEType} }, []string{"Today", "Notes of today", "text/markdown"})
	resource("size and annotations", func(r *mcp.Resource) any { return []any{r.Size, r.Annotations} }, []any{7, partAnnotations()})
	resource("icons", func(r *mcp.Resource) any { return r.Icons }, icons())
	resource("_meta", func(r *mcp.Resource) any { return r.Meta["com.example/item"] }, "seven")
	s.add("resources/list", "templates with all their members", func(ctx context.Context, t *target) error {
		for r, err := range t.session.ResourceTemplates(ctx, nil) {
			if err != nil {
				return err
			}
			if r.URITemplate == "site://room/{room}" {
				return same([]any{r.Title, r.Description, r.MIMEType, r.Annotations, r.Icons, r.Meta["com.example/item"]},
					[]any{"A room", "One room", "text/plain", partAnnotations(), icons(), "seven"})
			}
		}
		return errors.New("the template is not listed")
	})
	read := func(name, uri string, want *mcp.ResourceContents) {
		s.add("resources/read", name, func(ctx context.Context, t *target) error {
			res, err := t.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				return err
			}
			return same(res.Contents, []*mcp.ResourceContents{want})
		})
	}
	read("text with _meta", noteURI, &mcp.ResourceContents{URI: noteURI, MIMEType: "text/markdown", Text: "# Today", Meta: itemMeta()})
	read("binary", pictureURI, &mcp.ResourceContents{URI: pictureURI, MIMEType: "image/png", Blob: picture()})
	read("by a template", "site://room/red", &mcp.ResourceContents{URI: "site://room/red", MIMEType: "text/plain", Text: "room red"})
	read("ui:// page with its policy (MCP Apps)", uiURI, &mcp.ResourceContents{URI: uiURI, MIMEType: uiMIME, Text: uiText, Meta: uiPolicy()})
	s.add("tools/call", "by a page, of a tool for pages only (MCP Apps)", func(ctx context.Context, t *target) error {
		if _, err := t.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uiURI}); err != nil {
			return err
		}
		res, err := t.session.CallTool(ctx, &mcp.CallToolParams{Name: "refresh_map", Arguments: json.RawMessage(`{"zoom":2}`)})
		if err != nil {
			return err
		}
		return same(res.Content, []mcp.Content{&mcp.TextContent{Text: `{"zoom":2}`}})
	})
	s.add("resources/read", "a resource that does not exist", func(ctx context.Context, t *target) error {
		_, err := t.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "site://room/none"})
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || e.Code != mcp.CodeResourceNotFound && e.Code != jsonrpc.CodeInvalidParams {
			return fmt.Errorf("the error is %v", err)
		}
		return nil
	})
	s.add("resources/subscribe", "updates", func(ctx context.Context, t *target) error {
		mark := t.mark()
		if err := t.session.Subscribe(ctx, &mcp.SubscribeParams{URI: noteURI}); err != nil {
			return err
		}
		if t.session.InitializeResult().ProtocolVersion >= "2026-07-28" {
			if err := t.wait(ctx, mark, "subscribed "+noteURI); err != nil {
				return err
			}
		}
		if _, err := t.call(ctx, "change_notes", `{}`, nil); err != nil {
			return err
		}
		return t.wait(ctx, mark, "updated "+noteURI)
	})
}

func (s *set) prompts() {
	prompt := func(name string, of func(*mcp.Prompt) any, want any) {
		s.add("prompts/list", name, func(ctx context.Context, t *target) error {
			p, err := t.prompt(ctx, "welcome")
			if err != nil {
				return err
			}
			return same(of(p), want)
		})
	}
	prompt("title, description", func(p *mcp.Prompt) any { return []string{p.Title, p.Description} }, []string{"Welcome", "Welcomes a guest"})
	prompt("arguments", func(p *mcp.Prompt) any { return p.Arguments },
		[]*mcp.PromptArgument{{Name: "guest", Title: "Guest", Description: "Who comes", Required: true}, {Name: "room"}})
	prompt("icons", func(p *mcp.Prompt) any { return p.Icons }, icons())
	prompt("_meta", func(p *mcp.Prompt) any { return p.Meta["com.example/item"] }, "seven")
	get := func(name string, of func(*mcp.GetPromptResult) any, want any) {
		s.add("prompts/get", name, func(ctx context.Context, t *target) error {
			p, err := t.prompt(ctx, "welcome")
			if err != nil {
				return err
			}
			res, err := t.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name, Arguments: map[string]string{"guest": "Ann"}})
			if err != nil {
				return err
			}
			if len(res.Messages) != 3 {
				return fmt.Errorf("%d messages: %s", len(res.Messages), asJSON(res))
			}
			return same(of(res), want)
		})
	}
	get("text with arguments", func(r *mcp.GetPromptResult) any { return r.Messages[0] }, &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: "Welcome Ann"}})
	get("image of the assistant", func(r *mcp.GetPromptResult) any { return r.Messages[1] },
		&mcp.PromptMessage{Role: "assistant", Content: &mcp.ImageContent{Data: picture(), MIMEType: "image/png"}})
	get("embedded resource", func(r *mcp.GetPromptResult) any { return r.Messages[2] },
		&mcp.PromptMessage{Role: "user", Content: &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: noteURI, MIMEType: "text/markdown", Text: "# Today"}}})
	get("description and _meta of the result", func(r *mcp.GetPromptResult) any { return []any{r.Description, r.Meta["com.example/item"]} }, []any{"Welcomes a guest", "seven"})
	s.add("notifications", "a prompt that goes away", func(ctx context.Context, t *target) error {
		mark := t.mark()
		if _, err := t.call(ctx, "remove_prompt", `{}`, nil); err != nil {
			return err
		}
		if err := t.wait(ctx, mark, "prompts changed"); err != nil {
			return err
		}
		for {
			if _, err := t.prompt(ctx, "farewell"); err != nil {
				return nil
			}
			if ctx.Err() != nil {
				return errors.New("it is still listed")
			}
		}
	})
}

func (s *set) completions() {
	completes := func(name string, ref func(context.Context, *target) (*mcp.CompleteReference, error), c *mcp.CompleteContext, want []string) {
		s.add("completion", name, func(ctx context.Context, t *target) error {
			r, err := ref(ctx, t)
			if err != nil {
				return err
			}
			res, err := t.session.Complete(ctx, &mcp.CompleteParams{Ref: r, Argument: mcp.CompleteParamsArgument{Name: "room", Value: "re"}, Context: c})
			if err != nil {
				return err
			}
			return same([]any{res.Completion.Values, res.Completion.Total, res.Completion.HasMore}, []any{want, 42, true})
		})
	}
	completes("argument of a prompt, with context", func(ctx context.Context, t *target) (*mcp.CompleteReference, error) {
		p, err := t.prompt(ctx, "welcome")
		if err != nil {
			return nil, err
		}
		return &mcp.CompleteReference{Type: "ref/prompt", Name: p.Name}, nil
	}, &mcp.CompleteContext{Arguments: map[string]string{"guest": "Ann"}}, []string{"welcome:room=re!", "Ann"})
	completes("argument of a template", func(context.Context, *target) (*mcp.CompleteReference, error) {
		return &mcp.CompleteReference{Type: "ref/resource", URI: "site://room/{room}"}, nil
	}, nil, []string{"site://room/{room}:room=re!"})
}

// prompt finds a prompt by the end of its name.
func (t *target) prompt(ctx context.Context, name string) (*mcp.Prompt, error) {
	for p, err := range t.session.Prompts(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(p.Name, name) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("prompt %s is not listed", name)
}

// seen calls the tool that says what the server saw.
func seen(ctx context.Context, t *target, key string, check func(any) error, meta mcp.Meta) error {
	res, err := t.call(ctx, "seen", `{}`, meta)
	if err != nil {
		return err
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text(res)), &out); err != nil {
		return fmt.Errorf("%s: %w", text(res), err)
	}
	if out[key] == nil {
		return fmt.Errorf("the server saw no %s", key)
	}
	return check(out[key])
}

func text(r *mcp.CallToolResult) string {
	var out strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			out.WriteString(t.Text)
		}
	}
	return out.String()
}

// same compares two values as JSON.
func same(got, want any) error {
	var g, w any
	if err := errors.Join(json.Unmarshal([]byte(asJSON(got)), &g), json.Unmarshal([]byte(asJSON(want)), &w)); err != nil {
		return err
	}
	if !reflect.DeepEqual(g, w) {
		return fmt.Errorf("%s, want %s", shorten(asJSON(got)), shorten(asJSON(want)))
	}
	return nil
}

func contains(got, want string) error {
	if !strings.Contains(got, want) {
		return fmt.Errorf("%q, want %q in it", shorten(got), want)
	}
	return nil
}

func shorten(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}
