package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	trimFirst = 2 * time.Second // until the memory that reading took is unused
	trimEvery = 5 * time.Second // between checks
	trimSpare = 8 << 20         // bytes that are worth returning

	trimPages = 12 // checks between two calls of dropCodePages
)

// Trim returns unused memory to the system until ctx is done. A program that waits
// most of the time would keep it for long: reading a catalog needs more memory
// than holding it.
func Trim(ctx context.Context) {
	wait := time.NewTimer(trimFirst)
	defer wait.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased > trimSpare {
			debug.FreeOSMemory()
		}
		if n%trimPages == 0 {
			dropCodePages()
		}
		wait.Reset(trimEvery)
	}
}
