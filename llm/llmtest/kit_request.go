package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
