package main

import (
	"log"

	"ken/llm"
	"ken/llm/llmtest"
)

// scripted is a model that needs no key: it says what it is about to do, calls
// the function, and answers.
func scripted() llm.Model {
	return &llmtest.Fake{Script: llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{
			{ID: "1", Name: "select_active_intent", Arguments: []byte(`{"intent":"READ_FILE"}`)},
			{ID: "2", Name: "weather", Arguments: []byte(`{"city":"Oslo"}`)},
		}},
		llmtest.Reply{Text: "Take an umbrella: rain in Oslo."},
	)}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
