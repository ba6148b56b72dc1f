package memory

import (
	"runtime"
	"testing"
)

func TestMemoryIsCollectedLateOnlyOnce(t *testing.T) {
	set := make(chan int, 2)
	CollectLate(func(percent int) int { set <- percent; return gcPercentFirst })
	if got := <-set; got != gcPercentFirst {
		t.Errorf("at the start the percentage is %d, want %d", got, gcPercentFirst)
	}
	runtime.GC()
	if got := <-set; got != gcPercent {
		t.Errorf("after the first collection the percentage is %d, want %d", got, gcPercent)
	}
}

// TestAnotherPercentageStays: a program that set its own at the start keeps it.
func TestAnotherPercentageStays(t *testing.T) {
	set := make(chan int, 3)
	CollectLate(func(percent int) int { set <- percent; return gcPercentStart })
	<-set
	runtime.GC()
	<-set
	if got := <-set; got != gcPercentStart {
		t.Errorf("after the first collection the percentage is %d, want %d, which was set before", got, gcPercentStart)
	}
}
