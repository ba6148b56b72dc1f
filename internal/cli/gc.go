package cli

import "runtime"

const (
	// gcPercent trades a little speed while a catalog is read for memory that
	// stays small afterwards: most of what Ken holds never changes.
	gcPercent = 50

	// gcPercentFirst lets 16 MB be taken before memory is collected at all.
	// With gcPercent that begins at 2 MB, and short commands spent a third of
	// their time on it.
	gcPercentFirst = 400
)

// collectLate has memory collected for the first time when there is a good
// deal of it, and by gcPercent from then on. set is [runtime/debug.SetGCPercent].
func collectLate(set func(percent int) int) {
	set(gcPercentFirst)
	unheld := new([64]byte) // which the first collection therefore finds
	runtime.AddCleanup(unheld, func(percent int) { set(percent) }, gcPercent)
}
