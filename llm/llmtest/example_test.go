package llmtest_test

import (
	"context"
	"fmt"

	"ken/llm"
	"ken/llm/llmtest"
)

// A test of what stands above models scripts what the model says.
func ExampleFake() {
	model := &llmtest.Fake{Script: llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{{ID: "1", Name: "read_file", Arguments: []byte(`{"path":"a"}`)}}},
		llmtest.Reply{Text: "It is empty."},
	)}
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Blocks: []llm.Block{{Text: "What is in a?"}}}}}
	for range 2 {
		for chunk, err := range model.Generate(context.Background(), req) {
			switch {
			case err != nil:
				fmt.Println(err)
			case chunk.Block != nil && chunk.Block.Call != nil:
				fmt.Printf("%s %s\n", chunk.Block.Call.Name, chunk.Block.Call.Arguments)
			case chunk.Block != nil:
				fmt.Println(chunk.Block.Text)
			}
		}
	}
	fmt.Println(len(model.Requests()), "requests")
	// Output:
	// read_file {"path":"a"}
	// It is empty.
	// 2 requests
}
