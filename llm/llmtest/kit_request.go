package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ken/llm"
)

// tools makes tools of these names, each with a schema that has some depth.
func tools(names ...string) []llm.Tool {
	var list []llm.Tool
	for _, name := range names {
		list = append(list, llm.Tool{
			Name: name, Description: "Does what \"" + name + "\" says <now> & here.",
			Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"Which one"},` +
				`"lines":{"type":"array","items":{"type":"integer"}},"how":{"type":"string","enum":["a","b"]}},"required":["path"]}`),
		})
	}
	return list
}

// pixel is an image that says it is one.
func pixel(salt byte) *llm.Image {
	return &llm.Image{MIME: "image/png", Data: append([]byte("\x89PNG\r\n\x1a\n"), 0, 0xff, salt)}
}

// history is a conversation with every kind of block that all wires have.
func history() []llm.Message {
	return []llm.Message{
		said("What is in a.txt and b.txt?"),
		{Role: llm.Assistant, Blocks: []llm.Block{
			{Text: "I look at both."},
			{Call: &llm.ToolCall{ID: "call_1", Name: "read_file", Arguments: []byte(`{"path":"a.txt"}`)}},
			{Call: &llm.ToolCall{ID: "call_2", Name: "read_file", Arguments: []byte(`{"path":"b.txt","lines":[1]}`)}},
		}},
		{Role: llm.User, Blocks: []llm.Block{
			{Result: &llm.ToolResult{ID: "call_1", Name: "read_file", Blocks: []llm.Block{{Text: "alpha"}}}},
			{Result: &llm.ToolResult{ID: "call_2", Name: "read_file", Failed: true, Blocks: []llm.Block{{Text: "there is no such file"}}}},
		}},
		{Role: llm.Assistant, Blocks: []llm.Block{{Text: "Only a.txt is there."}}},
		{Role: llm.User, Blocks: []llm.Block{{Text: "And this?"}, {Image: pixel(1)}, {Text: "Say it in a word."}}},
		{Role: llm.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "call_3", Name: "list_files", Arguments: []byte(`{}`)}}}},
		{Role: llm.User, Blocks: []llm.Block{
			{Result: &llm.ToolResult{ID: "call_3", Name: "list_files", Blocks: nil}},
			{Text: "Hurry."},
		}},
	}
}

func sendsRequest(k *kit) error {
	req := hello()
	req.Model, req.System, req.MaxTokens, req.Effort = "model-of-the-request", "Be brief.", 4321, "low"
	req.Tools = tools("read_file", "list_files")
	_, seen, err := k.ask(req, Reply{Text: "ok"})
	if err != nil {
		return err
	}
	got := seen.Request
	if got.Effort != "" && got.Effort != req.Effort {
		err = fmt.Errorf("effort = %q, want %q", got.Effort, req.Effort)
	}
	return errors.Join(err,
		want("model", got.Model, req.Model), want("system", got.System, req.System), want("max tokens", got.MaxTokens, req.MaxTokens),
		want("stream", seen.Stream, true), sameTools(got.Tools, req.Tools), sameMessages(got.Messages, req.Messages))
}

func sendsHistory(k *kit) error {
	req := llm.Request{System: "Be brief.", Tools: tools("read_file", "list_files"), Messages: history()}
	_, seen, err := k.ask(req, Reply{Text: "ok"})
	if err != nil {
		return err
	}
	return errors.Join(sameTools(seen.Request.Tools, req.Tools), sameMessages(seen.Request.Messages, req.Messages), failures(k.wire, seen))
}

// failures checks that a result that failed can be told from one that did not.
func failures(w Wire, seen Seen) error {
	if w == Chat || w == Responses {
		return nil // the wire has no word for it
	}
	failed := map[string]bool{}
	for _, m := range seen.Request.Messages {
		for _, b := range m.Blocks {
			if b.Result != nil {
				failed[b.Result.ID] = b.Result.Failed
			}
		}
	}
	if failed["call_1"] || !failed["call_2"] {
		return fmt.Errorf("results that failed = %v, want call_2 alone", failed)
	}
	return nil
}

func sendsImages(k *kit) error {
	shown := pixel(7)
	req := llm.Request{Tools: tools("take_picture"), Messages: []llm.Message{
		{Role: llm.User, Blocks: []llm.Block{{Text: "Take pictures like this."}, {Image: pixel(3)}}},
		{Role: llm.Assistant, Blocks: []llm.Block{
			{Call: &llm.ToolCall{ID: "call_1", Name: "take_picture", Arguments: []byte(`{"path":"a"}`)}},
			{Call: &llm.ToolCall{ID: "call_2", Name: "take_picture", Arguments: []byte(`{"path":"b"}`)}},
		}},
		{Role: llm.User, Blocks: []llm.Block{
			{Result: &llm.ToolResult{ID: "call_1", Name: "take_picture", Blocks: []llm.Block{{Text: "taken"}, {Image: shown}}}},
			{Result: &llm.ToolResult{ID: "call_2", Name: "take_picture", Blocks: []llm.Block{{Image: pixel(9)}}}},
		}},
	}}
	_, seen, err := k.ask(req, Reply{Text: "ok"})
	if err != nil {
		return err
	}
	var got []byte // the salts, in order
	for i, m := range seen.Request.Messages {
		for _, b := range m.Blocks {
			list := []llm.Block{b}
			if b.Result != nil {
				list = b.Result.Blocks
			}
			for _, inner := range list {
				if inner.Image == nil {
					continue
				}
				salt := inner.Image.Data[len(inner.Image.Data)-1]
				if (salt == 3) != (i == 0) {
					err = errors.Join(err, fmt.Errorf("image %d stands in message %d", salt, i))
				}
				got = append(got, salt)
			}
		}
	}
	if !bytes.Equal(got, []byte{3, 7, 9}) {
		err = errors.Join(err, fmt.Errorf("images = %v, want %v: one of the user's and one of each result", got, []byte{3, 7, 9}))
	}
	return err
}

func manyTools(k *kit) error {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("tool_%03d", i))
	}
	req := hello()
	req.Tools = tools(names...)
	a, seen, err := k.ask(req, Reply{Calls: []llm.ToolCall{{ID: "call_1", Name: "tool_499", Arguments: []byte(`{"path":"x"}`)}}})
	if err != nil {
		return err
	}
	return errors.Join(want("stop", a.stop, llm.StopCalls), sameTools(seen.Request.Tools, req.Tools))
}

// sameBytes asks twice with one model and once with another.
func sameBytes(k *kit) error {
	req := llm.Request{System: "Be brief.", Tools: tools("read_file", "list_files"), Messages: history(), Cache: "conversation-1", Allowed: []string{"list_files"}, Effort: "low", MaxTokens: 9000}
	var bodies [][]byte
	for range 2 {
		err := k.with(Always(Reply{Text: "ok"}), func(ctx context.Context, m llm.Model, server *Server) error {
			for range 2 {
				if err := gather(ctx, m, req).fine(server.Requests()); err != nil {
					return err
				}
			}
			for _, s := range server.Requests() {
				bodies = append(bodies, s.Body)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, body := range bodies[1:] {
		if !bytes.Equal(body, bodies[0]) {
			return fmt.Errorf("equal requests were sent as different bytes:\n%.1500s\n%.1500s", bodies[0], body)
		}
	}
	return nil
}

// appendOnly sends a conversation as it grows. What was sent stays, but for
// marks.
func appendOnly(k *kit) error {
	all := append(history(), llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Text: "There."}}}, said("Thanks."))
	if k.wire == Messages || k.wire == Responses {
		all = append(all,
			llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Text: "What else?"}}},
			llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: "More."}, {Tools: tools("found_a", "found_b")}}},
			llm.Message{Role: llm.Assistant, Blocks: []llm.Block{{Text: "With these?"}}}, said("Yes."))
	}
	req := llm.Request{System: "Be brief.", Tools: tools("read_file", "list_files"), Cache: "conversation-1"}
	var before map[string]any
	for n := 1; n <= len(all); n++ {
		if all[n-1].Role != llm.User {
			continue
		}
		req.Messages = all[:n]
		_, seen, err := k.ask(req, Reply{Text: "ok"})
		if err != nil {
			return fmt.Errorf("with %d messages: %w", n, err)
		}
		var body map[string]any
		if err := json.Unmarshal(seen.Body, &body); err != nil {
			return err
		}
		unmark(body)
		if before != nil {
			if err := grown(before, body); err != nil {
				return fmt.Errorf("from a conversation to one of %d messages: %w", n, err)
			}
		}
		before = body
	}
	return nil
}

// unmark removes what may move.
func unmark(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		delete(v, "prompt_cache_breakpoint")
		for _, inner := range v {
			unmark(inner)
		}
	case []any:
		for _, inner := range v {
			unmark(inner)
		}
	}
}

// grown says whether a body is that before with more at the end of its list of
// messages.
func grown(before, after map[string]any) error {
	for _, name := range []string{"messages", "input", "contents"} {
		old, ok := before[name].([]any)
		if !ok {
			continue
		}
		list, _ := after[name].([]any)
		if len(list) < len(old) {
			return fmt.Errorf("%s has %d entries, and had %d", name, len(list), len(old))
		}
		for i := range old {
			if got, had := compact(list[i]), compact(old[i]); got != had {
				return fmt.Errorf("%s[%d] was sent as %.500s and is now %.500s: it breaks the cached prefix", name, i, had, got)
			}
		}
		delete(after, name)
		defer func() { after[name] = list }()
		delete(before, name)
	}
	if got, had := compact(after), compact(before); got != had {
		return fmt.Errorf("besides the messages, the request was %.1000s and is now %.1000s", had, got)
	}
	return nil
}

func allows(k *kit) error {
	req := llm.Request{Tools: tools("read_file", "list_files", "write_file"), Messages: history()}
	ask := func(allowed []string) (Seen, error) {
		req.Allowed = allowed
		_, seen, err := k.ask(req, Reply{Text: "ok"})
		if err == nil {
			err = sameTools(seen.Request.Tools, req.Tools)
		}
		if err != nil {
			err = fmt.Errorf("Allowed %q: %w", allowed, err)
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

func sameTools(got, want []llm.Tool) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d tools were sent, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Name != want[i].Name || got[i].Description != want[i].Description || !sameJSON(got[i].Schema, want[i].Schema) {
			return fmt.Errorf("tool %d = %s, want %s", i, show(got[i]), show(want[i]))
		}
	}
	return nil
}

// sameMessages compares conversations. Messages of one role that follow each
// other count as one.
func sameMessages(got, want []llm.Message) error {
	a, b := merged(got), merged(want)
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) {
			return fmt.Errorf("%d messages were sent, want %d", len(a), len(b))
		}
		if a[i].Role != b[i].Role || len(a[i].Blocks) != len(b[i].Blocks) {
			return fmt.Errorf("message %d was sent as %s, want %s", i, show(a[i]), show(b[i]))
		}
		for j := range a[i].Blocks {
			if !equal(a[i].Blocks[j], b[i].Blocks[j]) {
				return fmt.Errorf("message %d, block %d was sent as %s, want %s", i, j, show(a[i].Blocks[j]), show(b[i].Blocks[j]))
			}
		}
	}
	return nil
}

func merged(list []llm.Message) []llm.Message {
	var out []llm.Message
	for _, m := range list {
		if n := len(out) - 1; n >= 0 && out[n].Role == m.Role {
			out[n].Blocks = append(slices.Clip(out[n].Blocks), m.Blocks...)
			continue
		}
		out = append(out, m)
	}
	return out
}
