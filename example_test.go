package ken_test

import (
	"context"
	"fmt"
	"log"

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
	text, failed, err := k.Call(ctx, capability.Scope{}, "discover_capabilities", []byte(`{"query":"count words","kind":"tool"}`))
	if err != nil || failed {
		log.Fatal(text, err)
	}
	fmt.Println(text)
	// Output:
	// tool:word-count word-count(path: string) Count the lines, words and bytes of a file
}
