package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"ken/llm"
)

func saysText(k *kit) error {
	text := "One, two, three: a sentence that comes in pieces."
	a, _, err := k.ask(hello(), Reply{Text: text, Fragments: 5})
	if err != nil {
		return err
	}
	pieces := 0
	for _, c := range a.chunks {
		if c.Text != "" {
			pieces++
		}
	}
	if pieces != 5 {
		err = fmt.Errorf("the text came in %d fragments, want the 5 that the server sent", pieces)
	}
	return errors.Join(err, want("text", a.text, text), want("stop", a.stop, llm.StopEnd), sameBlocks(a.blocks, []llm.Block{{Text: text}}))
}

// streams holds the answer back until its first fragment was seen.
func streams(k *kit) error {
	hold := make(chan struct{})
	return k.with(Always(Reply{Text: "first second third", Hold: hold}), func(ctx context.Context, m llm.Model, _ *Server) error {
		open := true
		for c, err := range m.Generate(ctx, hello()) {
			if err != nil {
				return fmt.Errorf("Generate() = error %w; no fragment came while the server held back the rest", err)
			}
			if c.Text != "" && open {
				open = false
				close(hold)
			}
		}
		if open {
			return errors.New("Generate() yielded no text")
		}
		return nil
	})
}

func makesCalls(k *kit) error {
	calls := []llm.ToolCall{
		{ID: "call_a", Name: "read_file", Arguments: []byte(`{"path":"a.txt","lines":[1,2]}`)},
		{ID: "call_b", Name: "read_file", Arguments: []byte(`{"path":"b \"quoted\" \u00e4.txt"}`)},
		{ID: "call_c", Name: "list_files", Arguments: []byte(`{}`)},
	}
	req := hello()
	req.Tools = tools("read_file", "list_files")
	a, _, err := k.ask(req, Reply{Text: "Let me look.", Calls: calls})
	if err != nil {
		return err
	}
	blocks := []llm.Block{{Text: "Let me look."}}
	for i := range calls {
		blocks = append(blocks, llm.Block{Call: &calls[i]})
	}
	return errors.Join(want("stop", a.stop, llm.StopCalls), sameBlocks(a.blocks, blocks))
}

// makesIDs is for wires that may leave IDs out.
func makesIDs(k *kit) error {
	req := hello()
	req.Tools = tools("read_file")
	reply := Reply{Calls: []llm.ToolCall{
		{Name: "read_file", Arguments: []byte(`{"path":"a"}`)}, {Name: "read_file", Arguments: []byte(`{"path":"b"}`)},
	}}
	return k.with(Replies(reply, reply, Reply{Text: "done"}), func(ctx context.Context, m llm.Model, server *Server) error {
		seen := map[string]bool{}
		for range 2 {
			a := gather(ctx, m, req)
			if err := a.fine(server.Requests()); err != nil {
				return err
			}
			calls := a.calls()
			if len(calls) != 2 {
				return fmt.Errorf("got %d calls, want 2", len(calls))
			}
			answers := llm.Message{Role: llm.User}
			for _, c := range calls {
				if c.ID == "" || seen[c.ID] {
					return fmt.Errorf("the calls of two answers have the ids %q, want them set and different, in one conversation too", c.ID)
				}
				seen[c.ID] = true
				answers.Blocks = append(answers.Blocks, llm.Block{Result: &llm.ToolResult{ID: c.ID, Name: c.Name, Blocks: []llm.Block{{Text: "text of " + string(c.Arguments)}}}})
			}
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: a.blocks}, answers)
		}
		return gather(ctx, m, req).fine(server.Requests())
	})
}

func saysNothing(k *kit) error {
	a, _, err := k.ask(hello(), Reply{})
	if err != nil {
		return err
	}
	if len(a.blocks) > 0 {
		err = fmt.Errorf("an empty answer gave the blocks %s, want none", show(a.blocks))
	}
	return errors.Join(err, want("stop", a.stop, llm.StopEnd), want("text", a.text, ""))
}

// thoughtsComeBack plays a thought and sends it back. The server refuses one
// that was changed.
func thoughtsComeBack(k *kit) error {
	think := "First I look.\nThen I \"think\" <hard> & long ✓"
	first := Reply{Thought: think, Text: "A moment.", Calls: []llm.ToolCall{{ID: "call_1", Name: "read_file", Arguments: []byte(`{"path":"a"}`)}}}
	second := Reply{Thought: "And again.", Text: "Done."}
	req := hello()
	req.Tools = tools("read_file")
	req.Effort = "high"
	req.MaxTokens = 8000
	return k.with(Replies(first, second, Reply{Text: "bye"}), func(ctx context.Context, m llm.Model, server *Server) error {
		a := gather(ctx, m, req)
		if err := a.fine(server.Requests()); err != nil {
			return err
		}
		if a.thought != think {
			return fmt.Errorf("the fragments of the thought make up %q, want %q", a.thought, think)
		}
		if err := ownThoughts(k.wire, a); err != nil {
			return err
		}
		result := llm.ToolResult{ID: "call_1", Name: "read_file", Blocks: []llm.Block{{Text: "content"}}}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: a.blocks}, llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: &result}}})
		b := gather(ctx, m, req)
		if err := b.fine(server.Requests()); err != nil {
			return fmt.Errorf("with the thought sent back: %w", err)
		}
		if err := cameBack(k.wire, server.Requests()[1], think); err != nil {
			return err
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: b.blocks}, said("thanks"))
		return gather(ctx, m, req).fine(server.Requests())
	})
}

func ownThoughts(w Wire, a answer) error {
	for _, b := range a.blocks {
		if b.Reasoning != nil && len(b.Reasoning.Opaque) > 0 && b.Reasoning.Wire != string(w) {
			return fmt.Errorf("reasoning has the wire %q, want %q", b.Reasoning.Wire, w)
		}
	}
	return nil
}

// cameBack looks for a thought in what the server saw.
func cameBack(w Wire, seen Seen, think string) error {
	for _, m := range seen.Request.Messages {
		for _, b := range m.Blocks {
			switch {
			case b.Reasoning != nil && b.Reasoning.Text == think:
				return nil
			case w == Gemini && b.Call != nil && len(b.Call.Opaque) > 0:
				return nil // there the signature of the call is what counts
			}
		}
	}
	if w == Chat {
		return nil // the wire has no place for it
	}
	return fmt.Errorf("the thought did not come back in the next request: %.1000s", seen.Body)
}

func thoughtsStay(k *kit) error {
	secret := "what another vendor's model thought"
	req := hello()
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: []llm.Block{
		{Reasoning: &llm.Reasoning{Text: secret, Wire: "another-wire", Opaque: json.RawMessage(`{"type":"thinking","thinking":"` + secret + `","signature":"c2lnbmVk"}`)}},
		{Text: "I know."},
	}}, said("go on"))
	_, seen, err := k.ask(req, Reply{Text: "yes"})
	if err == nil && bytes.Contains(seen.Body, []byte(secret)) {
		err = fmt.Errorf("reasoning of another wire was sent: %.1000s", seen.Body)
	}
	return err
}

func counts(k *kit) error {
	usage := llm.Usage{Input: 1000, CachedRead: 600, CachedWrite: 150, Output: 50, Thought: 20}
	if k.wire == Gemini {
		usage.CachedWrite = 0 // it reports none
	}
	a, _, err := k.ask(hello(), Reply{Thought: "hm", Text: "so", Usage: usage})
	if err == nil && a.usage != usage {
		err = fmt.Errorf("usage = %+v, want %+v: Input counts cached tokens too, and Output those of thoughts", a.usage, usage)
	}
	return err
}

func stops(k *kit) error {
	var all error
	for _, stop := range []llm.StopReason{llm.StopEnd, llm.StopLength, llm.StopRefuse} {
		a, _, err := k.ask(hello(), Reply{Text: "half an answ", Stop: stop})
		if err == nil && a.stop != stop {
			err = fmt.Errorf("stop = %q, want %q", a.stop, stop)
		}
		all = errors.Join(all, err)
	}
	return all
}

func malformed(k *kit) error {
	raw := `{"path": "a.txt", "lines": [1, 2`
	req := hello()
	req.Tools = tools("read_file")
	return k.with(Replies(Reply{Calls: []llm.ToolCall{{ID: "call_1", Name: "read_file", Arguments: []byte(raw)}}}, Reply{Text: "sorry"}),
		func(ctx context.Context, m llm.Model, server *Server) error {
			a := gather(ctx, m, req)
			if k.wire == Gemini { // there the vendor itself finds them and says so instead of a call
				if a.err == nil {
					return a.broken
				}
				return kindIs(a.err, llm.Malformed)
			}
			if err := a.fine(server.Requests()); err != nil {
				return err
			}
			calls := a.calls()
			if len(calls) != 1 || string(calls[0].Arguments) != raw {
				return fmt.Errorf("calls = %s, want one with the arguments as the model wrote them: %q", show(calls), raw)
			}
			result := llm.ToolResult{ID: "call_1", Name: "read_file", Failed: true, Blocks: []llm.Block{{Text: "the arguments are no JSON"}}}
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Blocks: a.blocks}, llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: &result}}})
			if err := gather(ctx, m, req).fine(server.Requests()); err != nil {
				return fmt.Errorf("with malformed arguments in the history: %w", err)
			}
			return keeps(server.Requests()[1], raw)
		})
}

// keeps says whether a call that came back holds what the model wrote.
func keeps(seen Seen, raw string) error {
	for _, m := range seen.Request.Messages {
		for _, b := range m.Blocks {
			if b.Call == nil {
				continue
			}
			var args map[string]any
			if err := json.Unmarshal(b.Call.Arguments, &args); err != nil {
				return err
			}
			for _, v := range args {
				if v == raw {
					return nil
				}
			}
			return fmt.Errorf("malformed arguments went back as %s, want an object that holds %q", b.Call.Arguments, raw)
		}
	}
	return errors.New("the call did not come back")
}

func anyText(k *kit) error {
	var all error
	for _, text := range []string{
		"\u202email\u202c \u200b\u200d\u2028\u2029", "天気 погода 😀👩‍👩‍👧 ǆ", "<|endoftext|> </s> data: [DONE]\n\ndata: {}\r\n\r\nevent: error",
		"a\"b\\c\td\x01\x1f\x7f", "\ud7ff\ufffd\uffff", "line\nline\r\nline\rend", "&<>'`${x}{{y}}",
	} {
		req := llm.Request{System: "say " + text, Messages: []llm.Message{said(text)}}
		a, seen, err := k.ask(req, Reply{Text: text, Fragments: 50})
		if err == nil {
			err = errors.Join(want("answer", a.text, text), want("system", seen.Request.System, req.System), sameMessages(seen.Request.Messages, req.Messages))
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%q: %w", text, err))
		}
	}
	req := llm.Request{Messages: []llm.Message{said("not UTF-8: a\xff\xfeb")}}
	if _, _, err := k.ask(req, Reply{Text: "ok"}); err != nil {
		all = errors.Join(all, fmt.Errorf("text that is not UTF-8: %w", err))
	}
	return all
}

func largeText(k *kit) error {
	text := strings.Repeat("a megabyte of words, ä and 😀. ", 1<<20/33)
	req := llm.Request{Messages: []llm.Message{said(text)}, Tools: tools("read_file")}
	call := llm.ToolCall{ID: "call_1", Name: "read_file", Arguments: []byte(`{"path":"` + text + `"}`)}
	for _, pieces := range []int{1, 300} {
		a, seen, err := k.ask(req, Reply{Text: text, Calls: []llm.ToolCall{call}, Fragments: pieces})
		if err != nil {
			return fmt.Errorf("in %d fragments: %w", pieces, err)
		}
		if a.text != text {
			return fmt.Errorf("an answer of %d bytes in %d fragments came as %d bytes", len(text), pieces, len(a.text))
		}
		if calls := a.calls(); len(calls) != 1 || !sameJSON(calls[0].Arguments, call.Arguments) {
			return fmt.Errorf("%d bytes of arguments in %d fragments came as another call", len(call.Arguments), pieces)
		}
		if err := sameMessages(seen.Request.Messages, req.Messages); err != nil {
			return err
		}
	}
	return nil
}

// sameBlocks compares what a model answered with what the server said.
func sameBlocks(got, want []llm.Block) error {
	var kept []llm.Block
	for _, b := range got {
		if b.Call != nil {
			call := *b.Call
			call.Opaque = nil // the vendor's own affair
			b.Call = &call
		}
		if b.Reasoning == nil {
			kept = append(kept, b)
		}
	}
	if len(kept) != len(want) {
		return fmt.Errorf("blocks = %s, want %s", show(kept), show(want))
	}
	for i := range want {
		if !equal(kept[i], want[i]) {
			return fmt.Errorf("block %d = %s, want %s", i, show(kept[i]), show(want[i]))
		}
	}
	return nil
}

// equal compares blocks; JSON in them by what it means.
func equal(a, b llm.Block) bool {
	if a.Call != nil && b.Call != nil && a.Call.ID == b.Call.ID && a.Call.Name == b.Call.Name {
		return sameJSON(a.Call.Arguments, b.Call.Arguments)
	}
	if a.Result != nil && b.Result != nil {
		if a.Result.ID != b.Result.ID || len(a.Result.Blocks) != len(b.Result.Blocks) {
			return false
		}
		for i := range a.Result.Blocks {
			// Where the wire has no word for a failure, a text says it before the
			// text.
			if b.Result.Failed && b.Result.Blocks[i].Text != "" && strings.HasSuffix(a.Result.Blocks[i].Text, b.Result.Blocks[i].Text) {
				continue
			}
			if !equal(a.Result.Blocks[i], b.Result.Blocks[i]) {
				return false
			}
		}
		return true
	}
	if len(a.Tools) > 0 && len(b.Tools) > 0 {
		return sameTools(a.Tools, b.Tools) == nil
	}
	return reflect.DeepEqual(a, b)
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(x, y)
}
