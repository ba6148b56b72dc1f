package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	trimFirst = 2 * time.Second // after which what reading took is not needed any more
	trimEvery = 5 * time.Second // between looks
	trimSpare = 8 << 20         // bytes that are worth giving back

	trimPages = 12 // looks between those at the program itself
)

// trimMemory gives memory back to the system, which a program that waits most of the
// time would keep for a long while: reading a catalog takes more than having
// it.
func trimMemory(ctx context.Context) {
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
