package openai

import (
	"testing"

	"ken/internal/testkit"
	"ken/internal/testkit/wiretest"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestChatConformance runs the kit of all providers over Chat Completions:
// S3.04, S3.05, S3.06, S3.07, S3.30, S3.31, S3.U02.
func TestChatConformance(t *testing.T) {
	testkit.CI(t, "plays every clause of the contract")
	llmtest.Test(t, llmtest.Chat, func(t *testing.T, baseURL string) llm.Model { return NewChat(wiretest.Config(t, baseURL)) })
}

// TestResponsesConformance runs it over Responses.
func TestResponsesConformance(t *testing.T) {
	testkit.CI(t, "plays every clause of the contract")
	llmtest.Test(t, llmtest.Responses, func(t *testing.T, baseURL string) llm.Model { return NewResponses(wiretest.Config(t, baseURL)) })
}

// TestSearchConversation plays a conversation in which tools are found: first by
// a function, then by the wire's own search, which the model has from then on.
// The server checks each request as the vendor does.
func TestSearchConversation(t *testing.T) {
	call := func(name string) llmtest.Reply {
		return llmtest.Reply{Thought: "hm", Calls: []llm.ToolCall{{Name: name, Arguments: []byte(`{"p":"mail"}`)}}}
	}
	// The third reply calls what is no function, which the server plays as a
	// tool_search_call.
	server := llmtest.Serve(t, llmtest.Responses, llmtest.Replies(call("discover"), call("mail"), call("search"), call("post"), llmtest.Reply{Text: "done"}))
	m := NewResponses(wiretest.Config(t, server.URL()))
	req := llm.Request{Tools: []llm.Tool{tool("discover")}, System: "Be brief.", Cache: "s",
		Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: "Send it."}}}}}
	found := map[string][]llm.Block{
		"discover": {{Text: "found:"}, {Tools: []llm.Tool{tool("mail")}}}, "mail": {{Text: "no"}},
		"again": {{Text: "found too:"}, {Tools: []llm.Tool{tool("post")}}}, "post": {{Text: "sent"}},
	}
	for _, want := range []string{"discover", "mail", "discover", "post"} {
		calls := 0
		said, answers := llm.Message{Role: llm.Assistant}, llm.Message{Role: llm.User}
		for c, err := range m.Generate(t.Context(), req) {
			if err != nil {
				t.Fatalf("Generate before %s = %v", want, err)
			}
			if c.Block == nil {
				continue
			}
			said.Blocks = append(said.Blocks, *c.Block)
			if call := c.Block.Call; call != nil {
				calls++
				if call.Name != want {
					t.Fatalf("Generate called %q, want %q", call.Name, want)
				}
				blocks := found[want]
				if call.Opaque != nil {
					blocks = found["again"]
				}
				answers.Blocks = append(answers.Blocks, llm.Block{Result: &llm.ToolResult{ID: call.ID, Name: call.Name, Blocks: blocks}})
			}
		}
		if calls != 1 {
			t.Fatalf("Generate made %d calls, want 1", calls)
		}
		req.Messages = append(req.Messages, said, answers)
	}
	if err := last(m.Generate(t.Context(), req)); err != nil {
		t.Fatalf("Generate = %v", err)
	}
	for i, seen := range server.Requests()[1:] { // once declared the search stays
		if n := len(seen.Request.Tools); n != 2 || seen.Request.Tools[1].Name != "tool_search" {
			t.Errorf("request %d has %d tools, want discover and tool_search", i+2, n)
		}
	}
}
