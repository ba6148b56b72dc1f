package memory

import (
	"runtime"
	"testing"
	"time"
)

// TestSmallHeapsAreCollectedLessOften: while the program is busy there is room for
// gcFloor between two collections, or half of a large heap.
func TestSmallHeapsAreCollectedLessOften(t *testing.T) {
	for _, tt := range []struct {
		live uint64
		want int
	}{
		{live: 1 << 20, want: 400},
		{live: 10 << 20, want: 150},
		{live: 16 << 20, want: 100},
		{live: 18 << 20, want: 75},
		{live: 40 << 20, want: 50},
		{live: 400 << 20, want: 50},
		{live: 0, want: 400},
	} {
		if got := busyPercent(tt.live); got != tt.want {
			t.Errorf("busyPercent(%d MB) = %d, want %d", tt.live>>20, got, tt.want)
		}
	}
}

// TestOnlyABusyProgramTakesMemory: collections that follow each other closely make
// room, and few collections between two checks take it back.
func TestOnlyABusyProgramTakesMemory(t *testing.T) {
	var set []int
	p := &pacer{set: func(percent int) int { set = append(set, percent); return 0 }, percent: gcPercent}
	want := func(when string, percent, times int) {
		t.Helper()
		if p.percent != percent || len(set) != times {
			t.Errorf("%s: %d after %v, want %d after %d changes", when, p.percent, set, percent, times)
		}
	}
	now := time.Now()
	p.collected(now, 16<<20)
	now = now.Add(gcSoon)
	p.collected(now, 16<<20)
	want("collections with time between", gcPercent, 0)
	for range 3 {
		now = now.Add(gcSoon / 2)
		p.collected(now, 16<<20)
	}
	want("collections without", 100, 1)
	now = now.Add(2 * gcSoon)
	p.collected(now, 400<<20)
	want("a heap that has grown", gcPercent, 2)
	p.collected(now.Add(gcSoon/2), 16<<20)
	want("a small heap again", 100, 3)
	p.check(gcCalm + 1)
	want("a check while there are many", 100, 3)
	p.check(2*gcCalm + 1)
	want("a check while there are few", gcPercent, 4)
	p.end()
	if p.collected(now, 16<<20) {
		t.Error("a pacer that has ended waits for another collection")
	}
}

// TestPacerSeesCollections: those of the program.
func TestPacerSeesCollections(t *testing.T) {
	set := make(chan int, 8)
	p := startPacer(func(percent int) int {
		select {
		case set <- percent:
		default:
		}
		return 0
	}, 0)
	defer p.end()
	if got := <-set; got != gcPercent {
		t.Errorf("at first the percentage is %d, want %d", got, gcPercent)
	}
	for {
		runtime.GC()
		select {
		case got := <-set:
			if got <= gcPercent {
				t.Errorf("after two collections at once the percentage is %d, want more than %d", got, gcPercent)
			}
			return
		case <-t.Context().Done():
			t.Fatal("no collection was seen")
		default:
		}
	}
}
