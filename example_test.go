package ken_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"ken"
	"ken/capability"
)

func ExampleOpen() {
	ctx := context.Background()
	k, err := ken.Open(ctx, ken.Config{Catalogs: []string{"testdata/example"}})
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()
	found, err := k.Find(ctx, "open a github issue about the login page")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range found {
		fmt.Println(f.Capability.ID, "-", f.Capability.Description)
	}
	// Output:
	// skill:github - Work with GitHub issues and pull requests through the gh program
}

func ExampleKen_Describe() {
	ctx := context.Background()
	k, err := ken.Open(ctx, ken.Config{Catalogs: []string{"testdata/example"}})
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()
	detail, err := k.Describe(ctx, "tool:word-count")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(detail.Schema))
	// Output:
	// {"type":"object","properties":{"path":{"type":"string","description":"the file to count"}},"required":["path"]}
}

func ExampleKen_Select() {
	ctx := context.Background()
	k, err := ken.Open(ctx, ken.Config{Catalogs: []string{"testdata/example"}})
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()
	sel, err := k.Select(ctx, ken.Query{Message: "how many words are in this file"})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range sel.Found {
		fmt.Println(f.Brief)
	}
	nothing, err := k.Select(ctx, ken.Query{Message: "book a table for tonight"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(nothing.Found), "for the table")
	// Output:
	// 1. word-count (tool). Count the lines, words and bytes of a file. Params: path. Requires: wc
	// 0 for the table
}

func ExampleKen_Call() {
	ctx := context.Background()
	k, err := ken.Open(ctx, ken.Config{Catalogs: []string{"testdata/example"}})
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()
	answer, err := k.Call(ctx, capability.Scope{}, "discover_capabilities", []byte(`{"query":"count words","kind":"tool"}`))
	if err != nil || answer.Failed {
		log.Fatal(answer.Text, err)
	}
	fmt.Println(answer.Text) // for the model
	found := answer.Data.(ken.Searched)
	fmt.Println(found.Capabilities[0].ID, found.Capabilities[0].Kind, found.Capabilities[0].Available, found.TotalIndexed)

	answer, err = k.Call(ctx, capability.Scope{}, "describe_capability", []byte(`{"id":"tool:word-count"}`))
	if err != nil || answer.Failed {
		log.Fatal(answer.Text, err)
	}
	fmt.Println(string(answer.Data.(ken.Reading).InputSchema) != "")
	// Output:
	// tool:word-count word-count(path: string) Count the lines, words and bytes of a file
	// tool:word-count tool true 3
	// true
}

// A Go function becomes a capability with a schema of its own; a model's call of
// it is validated, judged and recorded like any other.
func ExampleFunc() {
	home, err := os.MkdirTemp("", "ken")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	os.Setenv("KEN_HOME", home)
	defer os.Unsetenv("KEN_HOME")

	type order struct {
		Number int `json:"number" jsonschema:"the order's number"`
	}
	status, err := ken.Func("order_status", "Say where an order is", func(_ context.Context, in order) (string, error) {
		return fmt.Sprintf("order %d is on its way", in.Number), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	status.Capability.Effects = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}

	ctx := context.Background()
	k, err := ken.Open(ctx, ken.Config{Functions: []*ken.Function{status}})
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()
	found, err := k.Find(ctx, "where is my order?")
	if err != nil {
		log.Fatal(err)
	}
	res, err := k.Invoke(ctx, capability.Call{
		Target: found[0].Capability.ID, Arguments: json.RawMessage(`{"number": 7}`), Session: "s1", Intent: "ANALYZE",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Parts[0].Text)
	_, err = k.Invoke(ctx, capability.Call{Target: found[0].Capability.ID, Arguments: json.RawMessage(`{"number": "seven"}`), Session: "s1", Intent: "ANALYZE"})
	fmt.Println(capability.KindOf(err))
	// Output:
	// order 7 is on its way
	// invalid
}
