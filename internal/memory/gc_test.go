package memory

import (
	"runtime"
	"testing"
)

func TestMemoryIsCollectedLateOnlyOnce(t *testing.T) {
	set := make(chan int, 2)
	CollectLate(func(percent int) int { set <- percent; return 0 })
	if got := <-set; got != gcPercentFirst {
		t.Errorf("at the start the percentage is %d, want %d", got, gcPercentFirst)
	}
	runtime.GC()
	if got := <-set; got != gcPercent {
		t.Errorf("after the first collection the percentage is %d, want %d", got, gcPercent)
	}
}
