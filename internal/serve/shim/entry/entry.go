// Package entry runs the shim in a program that was started as ken mcp, before
// the program's other packages are initialised. A program has that by
// importing it, and so only cmd/ken may: in another program with a command mcp
// it would take that over.
package entry

import (
	"os"

	"ken/internal/serve/shim"
)

// The language initialises packages in the order of their paths as soon as all
// that they import is initialised, so this runs before most of the program
// has. Only memory and speed hang on that order: it is always before main.
var _ = dispatch()

func dispatch() (ordinary bool) {
	if !shim.Mine(os.Args) {
		return true
	}
	// In a goroutine of its own: the one that initialises packages is bound to
	// a thread, which makes each of its waits dear.
	status := make(chan int)
	go func() { status <- shim.Main(os.Args[2:]) }()
	os.Exit(<-status)
	return false
}
