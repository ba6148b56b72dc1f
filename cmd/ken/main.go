// Command ken knows what an AI agent can do, shows it the few things that
// matter, and runs them within bounds.
package main

import (
	"os"

	"ken/internal/cli"
	"ken/internal/run/childmode"
	_ "ken/internal/serve/shim/entry" // ken mcp ends there, before the rest begins
)

func main() {
	childmode.Run() // in a process that Ken starts for its own work nothing else happens
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
