package llmtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/llm"
)

func allows(k *kit) error {
	req := llm.Request{Tools: tools("read_file", "list_files", "write_file"), Messages: history()}
	ask := func(allowed []string) (Seen, error) {
		req.Allowed = allowed
		_, seen, err := k.ask(req, Reply{Text: "ok"})
		if err == nil {
			err = sameTools(seen.Request.Tools, req.Tools)
		}
		if err != nil {
			err = fmt.Errorf("with %q allowed: %w", allowed, err)
		}
		return seen, err
	}
	free, err := ask(nil)
	if err != nil {
		return err
	}
	two, err := ask([]string{"write_file", "list_files"})
	if err != nil {
		return err
	}
	none, err := ask([]string{})
	if err != nil {
		return err
	}
	if k.wire == Messages {
		return errors.Join(want("tool_choice with two allowed", two.Choice, free.Choice), want("tool_choice with none allowed", none.Choice, free.Choice))
	}
	got := slices.Sorted(slices.Values(two.Request.Allowed))
	if !slices.Equal(got, []string{"list_files", "write_file"}) {
		err = fmt.Errorf("two allowed were sent as %s, want exactly these two", two.Choice)
	}
	if mode := map[Wire]string{Gemini: `"VALIDATED"`}[k.wire]; mode != "" && !strings.Contains(two.Choice, mode) {
		err = errors.Join(err, fmt.Errorf("two allowed were sent as %s, want mode %s: others forbid a plain answer", two.Choice, mode))
	}
	if k.wire != Gemini && !strings.Contains(two.Choice, `"auto"`) {
		err = errors.Join(err, fmt.Errorf("two allowed were sent as %s, want mode auto: required forbids a plain answer", two.Choice))
	}
	if none.Request.Allowed == nil || len(none.Request.Allowed) > 0 {
		err = errors.Join(err, fmt.Errorf("none allowed was sent as %q, want the wire's way to forbid all", none.Choice))
	}
	if free.Request.Allowed != nil {
		err = errors.Join(err, fmt.Errorf("all allowed was sent as %s, want no restriction", free.Choice))
	}
	return err
}

func caches(k *kit) error {
	req := llm.Request{System: "Be brief.", Tools: tools("read_file", "list_files"), Messages: history()}
	for range 10 {
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Text: "Yes."}}}, said("More."))
	}
	_, plain, err := k.ask(req, Reply{Text: "ok"})
	if err != nil {
		return err
	}
	req.Cache = "conversation-1"
	_, marked, err := k.ask(req, Reply{Text: "ok"})
	if err != nil {
		return err
	}
	err = errors.Join(want("marks without Cache", plain.Marks, 0), want("cache key without Cache", plain.CacheKey, ""))
	switch k.wire {
	case Messages:
		if marked.Marks < 1 || marked.Marks > 4 {
			err = errors.Join(err, fmt.Errorf("marks = %d, want 1 to 4", marked.Marks))
		}
	case Chat, Responses:
		err = errors.Join(err, want("cache key", marked.CacheKey, req.Cache))
	}
	return err
}

func inline(k *kit) error {
	given := tools("found_a", "found_b")
	req := llm.Request{System: "Be brief.", Tools: tools("read_file"), Cache: "c", Messages: append(history()[:4:4],
		llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: "Now with more."}, {Tools: given}}},
		llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "call_9", Name: "found_a", Arguments: []byte(`{"path":"x"}`)}}}},
		llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "call_9", Name: "found_a", Blocks: []llm.Block{{Text: "fine"}}}}}},
	)}
	return k.midway(req, given, llm.Inline, UnsupportedInline)
}

func search(k *kit) error {
	given := tools("found_a", "found_b")
	req := llm.Request{System: "Be brief.", Tools: tools("discover", "read_file"), Cache: "c", Messages: []llm.Message{
		said("Find something."),
		{Role: llm.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "call_1", Name: "discover", Arguments: []byte(`{"path":"x"}`)}}}},
		{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "call_1", Name: "discover", Blocks: []llm.Block{{Tools: given}}}}}},
	}}
	return k.midway(req, given, llm.Search, UnsupportedSearch)
}

// midway checks tools in the middle of a conversation: they arrive once and in
// order, or the provider says that its wire has no such thing.
func (k *kit) midway(req llm.Request, given []llm.Tool, feature string, fault Fault) error {
	lacks := func(ctx context.Context, m llm.Model, server *Server, most int) error {
		a := gather(ctx, m, req)
		e, ok := errors.AsType[*llm.Error](a.err)
		if !ok || e.Kind != llm.Unsupported || e.Feature != feature {
			return fmt.Errorf("Generate() = error %v, want one of kind %v with the feature %q", a.err, llm.Unsupported, feature)
		}
		if n := len(server.Requests()); n > most {
			return fmt.Errorf("%d requests were made, want %d", n, most)
		}
		return nil
	}
	if k.wire == Chat || k.wire == Gemini {
		return k.with(Always(Reply{Text: "ok"}), func(ctx context.Context, m llm.Model, server *Server) error {
			return lacks(ctx, m, server, 0)
		})
	}
	_, seen, err := k.ask(req, Reply{Text: "ok"})
	if err != nil {
		return err
	}
	var got []llm.Tool
	for _, m := range seen.Request.Messages {
		got = append(got, givenIn(m)...)
	}
	first := slices.DeleteFunc(slices.Clone(seen.Request.Tools), func(t llm.Tool) bool { return t.Name == searchTool })
	if err := errors.Join(sameTools(got, given), sameTools(first, req.Tools)); err != nil {
		return fmt.Errorf("%w\nthe body: %.3000s", err, seen.Body)
	}
	return k.with(Always(Reply{Fault: fault}), func(ctx context.Context, m llm.Model, server *Server) error {
		return lacks(ctx, m, server, 1)
	})
}
