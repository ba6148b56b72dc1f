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

	// trimStart is after how many checks, a minute, the start is over if the program
	// never rested. Reading a catalog of 100,000 for the first time takes ten seconds,
	// and forty on a busy machine.
	trimStart = 12

	trimPages = 3 // checks between two calls of dropCodePages

	trimQuiet = 1 << 20 // bytes allocated between two checks while nothing is done
	trimUsed  = 4 << 20 // bytes allocated since memory was last returned, after which it is worth doing again
)

// Trim returns unused memory to the system until ctx is done. A program that waits
// most of the time would keep it for long: reading a catalog needs more memory
// than holding it, and what calls left behind is found only by a collection, which
// nothing starts while nothing is done.
//
// Until the program first rests, collections are rare and nothing is returned: most of
// what is read at the start stays, and the rest is soon needed again.
func Trim(ctx context.Context) {
	debug.SetGCPercent(gcPercentStart)
	wait := time.NewTimer(trimFirst)
	defer wait.Stop()
	var u usage
	var pace *pacer
	defer func() {
		if pace != nil {
			pace.end()
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		free, rest := u.check(&m)
		switch {
		case pace != nil:
			pace.check(m.NumGC)
		case u.started:
			pace = startPacer(debug.SetGCPercent, m.NumGC)
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
