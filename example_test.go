package ken_test

import (
	"context"
	"fmt"
	"log"

	"ken"
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
