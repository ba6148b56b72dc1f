package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"ken"
	"ken/capability"
	"ken/llm"
	"ken/llm/llmtest"
	"ken/plugin"
)

func main() {
	ken.Helper()
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	ctx := context.Background()
	home, err := os.MkdirTemp("", "ken") // a real program has a folder that it keeps
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	k, err := ken.Open(ctx, ken.Config{
		Home:    home,
		Model:   scripted(), // nil: the model of ken.yaml
		Plugins: []plugin.Plugin{bell{w}, dice{}, curfew{w}, tone{}, meter{w}},
	})
	if err != nil {
		return err
	}
	res, err := k.Invoke(ctx, capability.Call{Target: "tool:roll-dice", Origin: capability.ByPerson})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, res.Parts[0].Text)
	for event, err := range k.Turn(ctx, ken.Words{Text: "list the files with a command", Alone: true}) {
		if err != nil {
			return err
		}
		switch e := event.(type) {
		case ken.Finished:
			if e.Error != "" {
				fmt.Fprintln(w, e.Error)
			}
		case ken.Done:
			fmt.Fprintln(w, e.Text)
		}
	}
	return k.Close()
}

// scripted is a model that needs no key.
func scripted() llm.Model {
	return &llmtest.Fake{Script: llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{
			{ID: "1", Name: "select_active_intent", Arguments: []byte(`{"intent":"EXECUTE"}`)},
			{ID: "2", Name: "shell", Arguments: []byte(`{"cmd":"ls"}`)},
		}},
		llmtest.Reply{Text: "I may not.", Want: []string{"Answer in one sentence"}},
	)}
}
