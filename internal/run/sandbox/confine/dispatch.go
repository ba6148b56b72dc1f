package confine

import "os"

// A helper needs nothing of the program but this package, and must not wait
// for the initialisation of the rest. The language initialises packages in the
// order of their paths as soon as all that they import is initialised; so this
// runs before everything that needs net, regexp or a package of Ken's. Only
// the helper's speed hangs on that order: it is always before main. What this
// package imports is waited for with all that comes before it by name;
// runtime/debug alone was half a millisecond.
var _ = Dispatch()

// Dispatch does the work of the mode the process was started in, by its first
// argument, and does not return; without one it reports that the process is an
// ordinary one.
func Dispatch() (ordinary bool) {
	switch os.Args[0] {
	case Name:
		Main()
	case CanaryName:
		Canary()
	case HoldName:
		Hold()
	case NestName:
		Nest()
	case TrialName:
		Trial()
	}
	return true
}
