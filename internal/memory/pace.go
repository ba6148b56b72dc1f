package memory

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// gcFloor is how much is allocated between two collections at least while the
	// program is busy. A catalog of 2,000 tools is 16 MB, and half of that made calls
	// wait for collections.
	gcFloor = 16 << 20

	// gcSoon is the time between two collections below which the program is busy.
	gcSoon = 500 * time.Millisecond

	// gcCalm is how many collections between two checks are so few that the program
	// is no longer busy. gcFloor each in trimEvery is less than gcPercent in gcSoon.
	gcCalm = 2
)

// A pacer sets how much is allocated between two collections: gcPercent of what is in
// use, and gcFloor or more while collections would follow each other closely. So memory
// is used where it saves work, and a program with little to do stays small.
type pacer struct {
	set func(percent int) int // [runtime/debug.SetGCPercent]

	mu      sync.Mutex
	percent int
	last    time.Time // of the last collection
	count   uint32    // collections until the last check
	ended   bool
}

// startPacer returns a pacer that sees each collection until end is called.
func startPacer(set func(percent int) int, collections uint32) *pacer {
	p := &pacer{set: set, percent: gcPercent, count: collections}
	set(gcPercent)
	p.await()
	return p
}

// await has collected called after the next collection.
func (p *pacer) await() {
	unreferenced := new([64]byte) // found by the next collection
	runtime.AddCleanup(unreferenced, func(p *pacer) {
		if p.collected(time.Now(), liveBytes()) {
			p.await()
		}
	}, p)
}

// collected sets the percentage after a collection that found so many bytes in use. It
// reports whether the next collection is of interest too.
func (p *pacer) collected(now time.Time, live uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	if percent := busyPercent(live); now.Sub(p.last) < gcSoon || percent < p.percent { // a larger heap has room enough
		p.apply(percent)
	}
	p.last = now
	return true
}

// check sets the percentage back if there were few collections since the last check.
// collections is how many there have been in all.
func (p *pacer) check(collections uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if collections-p.count <= gcCalm {
		p.apply(gcPercent)
	}
	p.count = collections
}

// apply sets a percentage. It is called with mu held.
func (p *pacer) apply(percent int) {
	if p.percent != percent {
		p.percent = percent
		p.set(percent)
	}
}

func (p *pacer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// busyPercent returns the percentage at which about gcFloor bytes are allocated between
// two collections, and no less than gcPercent. It is a multiple of 25, so that it
// rarely changes.
func busyPercent(live uint64) int {
	percent := gcFloor * 100 / max(live, 1)
	return int(min(max(percent-percent%25, gcPercent), gcPercentFirst))
}

// liveBytes returns how much the last collection found in use.
func liveBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
