package demo

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/llm"
)

// generate returns the text and the calls of one answer.
func generate(t *testing.T, m *Model, messages ...llm.Message) (text string, calls []string, stop llm.StopReason) {
	t.Helper()
	req := llm.Request{Tools: []llm.Tool{{Name: "select_active_intent"}, {Name: "read_file"}}, Messages: messages}
	var streamed strings.Builder
	for c, err := range m.Generate(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		streamed.WriteString(c.Text)
		if c.Block != nil && c.Block.Call != nil {
			calls = append(calls, c.Block.Call.Name)
		} else if c.Block != nil && c.Block.Text != streamed.String() {
			t.Errorf("the block has %q, and its fragments %q", c.Block.Text, streamed.String())
		}
		stop = c.Stop
	}
	return streamed.String(), calls, stop
}

func said(text string) llm.Message {
	return llm.Message{Role: llm.User, Blocks: []llm.Block{{Text: text}}}
}

// TestModel: the model calls, and answers by the result. Other messages get what it
// knows.
func TestModel(t *testing.T) {
	m := &Model{}
	read := Requests()[0].Text
	if _, calls, stop := generate(t, m, said(read)); !slices.Equal(calls, []string{"select_active_intent", "read_file"}) || stop != llm.StopCalls {
		t.Errorf("calls = %q, stop = %q", calls, stop)
	}
	result := func(text string, failed bool) llm.Message {
		return llm.Message{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "call", Name: "read_file", Failed: failed, Blocks: []llm.Block{{Text: text}}}}}}
	}
	if text, calls, stop := generate(t, m, said(read), result("milk\ncoffee\n", false)); !strings.Contains(text, "coffee") || len(calls) > 0 || stop != llm.StopEnd {
		t.Errorf("answer = %q, calls = %q, stop = %q", text, calls, stop)
	}
	if text, _, _ := generate(t, m, said(read), result("no such file\nmore", true)); text != "I could not read the file: no such file" {
		t.Errorf("answer = %q", text)
	}
	// A request that is made again is played again.
	if _, calls, _ := generate(t, m, said(read), result("milk", false), said(read)); len(calls) != 2 {
		t.Errorf("calls of the second time = %q", calls)
	}
	if text, calls, _ := generate(t, m, said("write me a poem")); !strings.Contains(text, read) || len(calls) > 0 {
		t.Errorf("answer = %q, calls = %q", text, calls)
	}
}

// TestPace: the model speaks word by word, and stops when its context ends.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
		defer cancel()
		words := 0
		var last error
		for c, err := range (&Model{Pace: 100 * time.Millisecond}).Generate(ctx, llm.Request{Messages: []llm.Message{said("hello")}}) {
			if last = err; err == nil && c.Text != "" {
				words++
			}
		}
		if words != 3 || last == nil {
			t.Errorf("%d words and error %v, want 3 and the end of the context", words, last)
		}
	})
}
