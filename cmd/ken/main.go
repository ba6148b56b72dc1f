// Command ken knows what an AI agent can do, and shows it the few things that
// matter.
package main

import (
	"os"

	"ken/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
