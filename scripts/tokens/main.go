//go:build tables

// Command tokens makes the tables of package tokenizer, o200k.bin and
// classes.bin, out of the library that its tests compare it with:
//
//	go run -tags tables ./scripts/tokens internal/tokenizer
package main

import (
	"fmt"
	"os"

	"github.com/tiktoken-go/tokenizer/codec"

	"ken/internal/tokenizer"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tokens FOLDER")
		os.Exit(2)
	}
	c := codec.NewO200kBase()
	var tokens []string
	for {
		s, err := c.Decode([]uint{uint(len(tokens))})
		if err != nil {
			break
		}
		tokens = append(tokens, s)
	}
	if err := tokenizer.WriteTables(os.Args[1], tokens); err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}
