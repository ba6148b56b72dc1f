// Package memory keeps the memory of long-running and short commands small.
package memory

import "runtime"

const (
	// gcPercent trades a little speed while a catalog is read for memory that
	// stays small afterwards: most of what Ken holds never changes.
	gcPercent = 50

	// gcPercentFirst starts the first collection at 16 MB. With gcPercent it
	// starts at 2 MB, and short commands spent a third of their time on it.
	gcPercentFirst = 400

	// gcPercentStart is for a program that will run long, until it first rests. What
	// it reads at its start stays, and each collection would look at all of it again.
	gcPercentStart = 100
)

// CollectLate delays the first garbage collection, so that short commands need
// none. After it, gcPercent applies, unless another percentage was set meanwhile.
// set is [runtime/debug.SetGCPercent].
func CollectLate(set func(percent int) int) {
	set(gcPercentFirst)
	unreferenced := new([64]byte) // found by the first collection
	runtime.AddCleanup(unreferenced, func(percent int) {
		if was := set(percent); was != gcPercentFirst {
			set(was)
		}
	}, gcPercent)
}
