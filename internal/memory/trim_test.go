package memory

import (
	"runtime"
	"testing"
)

// TestMemoryIsReturnedAtRest: once after work that has ended, not while it goes on,
// and not again without more work.
func TestMemoryIsReturnedAtRest(t *testing.T) {
	var u usage
	for i, step := range []struct {
		allocated uint64 // in all
		idle      uint64 // unused and not returned
		free      bool
		rest      bool
	}{
		{allocated: 50 << 20},
		{allocated: 90 << 20},
		{allocated: 90<<20 + 1000, free: true, rest: true},
		{allocated: 90<<20 + 2000},
		{allocated: 92 << 20},
		{allocated: 92<<20 + 1000}, // too little since
		{allocated: 92<<20 + 2000, idle: 9 << 20, free: true},
		{allocated: 99 << 20},
		{allocated: 99<<20 + 1000, free: true, rest: true},
	} {
		free, rest := u.check(&runtime.MemStats{TotalAlloc: step.allocated, HeapIdle: step.idle})
		if free != step.free || rest != step.rest {
			t.Errorf("check %d: returned %v and at rest %v, want %v and %v", i, free, rest, step.free, step.rest)
		}
	}
}

// TestSmallHeapsAreCollectedLessOften: between two collections there is room for
// gcFloor, or half of a large heap.
func TestSmallHeapsAreCollectedLessOften(t *testing.T) {
	for _, tt := range []struct {
		live    uint64
		present int
		want    int
	}{
		{live: 1 << 20, present: 200, want: 400},
		{live: 10 << 20, present: 200, want: 200},
		{live: 20 << 20, present: 200, want: 100},
		{live: 20 << 20, present: 100, want: 100},
		{live: 40 << 20, present: 100, want: 50},
		{live: 400 << 20, present: 50, want: 50},
		{live: 0, present: 50, want: 400},
	} {
		if got := percentFor(tt.live*uint64(100+tt.present)/100, tt.present); got != tt.want {
			t.Errorf("percentFor(%d MB, %d) = %d, want %d", tt.live>>20, tt.present, got, tt.want)
		}
	}
}

// TestNothingIsReturnedAtTheStart: not before the program first rests, or had the time to.
func TestNothingIsReturnedAtTheStart(t *testing.T) {
	var u usage
	for i := range 2 * trimStart {
		free, _ := u.check(&runtime.MemStats{TotalAlloc: uint64(i+1) << 24, HeapIdle: 9 << 20})
		if want := i+1 >= trimStart; free != want || u.started != want {
			t.Errorf("check %d: returned %v and started %v, want %v", i, free, u.started, want)
		}
	}
}
