package openai

import (
	"io"
	"iter"
	"testing"

	"ken/internal/testkit/wiretest"
	"ken/llm"
)

// searched is a history in which one call has the id "used" and the search for
// tools is called discover.
func searched() []llm.Message {
	return []llm.Message{
		{Role: llm.User, Blocks: []llm.Block{{Text: "go"}}},
		{Role: llm.Assistant, Blocks: []llm.Block{{Call: &llm.ToolCall{ID: "used", Name: "discover", Arguments: []byte(`{}`)}}}},
		{Role: llm.User, Blocks: []llm.Block{{Result: &llm.ToolResult{ID: "used", Name: "discover", Blocks: []llm.Block{
			{Tools: []llm.Tool{{Name: "mail", Description: "Mails.", Schema: []byte(`{"type":"object"}`)}}},
		}}}}},
	}
}

// TestStreams plays recorded forms of the wires.
func TestStreams(t *testing.T) {
	wiretest.Streams(t, func(wire string, r io.Reader) iter.Seq2[llm.Chunk, error] {
		if wire == "responses" {
			return decodeResponses(r, searched(), 0)
		}
		return decodeChat(r, searched(), 0)
	})
}
