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
)

// CollectLate delays the first garbage collection, so that short commands need
// none. After it, gcPercent applies. set is [runtime/debug.SetGCPercent].
func CollectLate(set func(percent int) int) {
	set(gcPercentFirst)
	unreferenced := new([64]byte) // found by the first collection
	runtime.AddCleanup(unreferenced, func(percent int) { set(percent) }, gcPercent)
}
