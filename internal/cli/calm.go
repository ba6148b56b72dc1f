package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	calmFirst = 2 * time.Second // after which what reading took is not needed any more
	calmEvery = 5 * time.Second // between looks
	calmSpare = 8 << 20         // bytes that are worth giving back

	calmUnload = 12 // looks between those at the program itself
)

// calm gives memory back to the system, which a program that waits most of the
// time would keep for a long while: reading a catalog takes more than having
// it.
func calm(ctx context.Context) {
	wait := time.NewTimer(calmFirst)
	defer wait.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapIdle-m.HeapReleased > calmSpare {
			debug.FreeOSMemory()
		}
		if n%calmUnload == 0 {
			unload()
		}
		wait.Reset(calmEvery)
	}
}
