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

	trimStart = 12 // checks after which the start is over, if the program never rested
	trimPages = 12 // checks between two calls of dropCodePages

	trimQuiet = 1 << 20 // bytes allocated between two checks while nothing is done
	trimUsed  = 4 << 20 // bytes allocated since memory was last returned, after which it is worth doing again

	// gcFloor is how much is allocated between two collections at least. A catalog of
	// 2,000 tools is 20 MB, and a percentage of that made calls wait for collections.
	// At rest memory is returned in any case.
	gcFloor = 24 << 20
)

// Trim returns unused memory to the system until ctx is done. A program that waits
// most of the time would keep it for long: reading a catalog needs more memory
// than holding it, and what calls left behind is found only by a collection, which
// nothing starts while nothing is done.
//
// Until the program first rests, collections are rare and nothing is returned: most of
// what is read at the start stays, and the rest is soon needed again.
func Trim(ctx context.Context) {
	percent := gcPercentStart
	debug.SetGCPercent(percent)
	wait := time.NewTimer(trimFirst)
	defer wait.Stop()
	var u usage
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		free, rest := u.check(&m)
		if next := percentFor(m.NextGC, percent); u.started && next != percent {
			percent = next
			debug.SetGCPercent(percent)
		}
		if free {
			debug.FreeOSMemory()
		}
		if rest || n%trimPages == 0 {
			dropCodePages()
		}
		wait.Reset(trimEvery)
	}
}

// percentFor returns the percentage at which gcFloor bytes or more are allocated
// between two collections, if the next one begins at a size of the heap with the
// present percentage. It is a multiple of gcPercent, so that it rarely changes.
func percentFor(next uint64, present int) int {
	live := next * 100 / uint64(100+present)
	steps := gcFloor * 100 / gcPercent / max(live, 1)
	return gcPercent * int(min(max(steps, 1), gcPercentFirst/gcPercent))
}

// A usage is what the program had allocated in all, at two earlier times.
type usage struct {
	seen  uint64 // at the last check
	freed uint64 // when memory was last returned

	checks  int
	started bool // it has rested once, or had the time to
}

// check reports whether memory is to be returned, and whether the program has just
// come to rest.
func (u *usage) check(m *runtime.MemStats) (free, rest bool) {
	quiet := m.TotalAlloc-u.seen < trimQuiet
	rest = quiet && m.TotalAlloc-u.freed > trimUsed
	u.checks++
	u.started = u.started || rest || u.checks >= trimStart
	free = rest || u.started && m.HeapIdle-m.HeapReleased > trimSpare
	u.seen = m.TotalAlloc
	if rest {
		u.freed = m.TotalAlloc
	}
	return free, rest
}
