// Tally prints the table of `make bench` and keeps it, and that of `make soak`,
// in docs/measured.md.
//
//	tally bench BARS           benchmark output on stdin, compared with the file BARS
//	tally keep FILE SECTION    stdin replaces a marked section of FILE
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "bench":
		return bench(os.Stdin, args[1], os.Stdout)
	case len(args) == 3 && args[0] == "keep":
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		return keep(args[1], args[2], string(text))
	}
	return fmt.Errorf("%q: write bench BARS, or keep FILE SECTION", args)
}
