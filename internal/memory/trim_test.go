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
