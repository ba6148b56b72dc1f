package sandbox

import (
	"os"
	"sync/atomic"

	"ken/internal/run/sandbox/confine"
)

// ready remembers that the program can be its own helper. Without it a run
// would start the program anew, from its beginning, which is never meant.
var ready atomic.Bool

// Helper must be the first statement of main, and of TestMain. In a process
// started as the sandbox's helper it does the helper's work and does not
// return; in any other it returns at once.
func Helper() {
	switch os.Args[0] {
	case confine.Name:
		confine.Main()
	case confine.CanaryName:
		confine.Canary()
	case confine.HoldName:
		confine.Hold()
	}
	ready.Store(true)
}
