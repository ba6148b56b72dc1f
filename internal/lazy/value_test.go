package lazy

import (
	"errors"
	"sync"
	"testing"
)

func TestValue(t *testing.T) {
	builds, failing := 0, true
	var v Value[int]
	v.Build = func() (int, error) {
		builds++
		if _, ok := v.Peek(); ok {
			t.Error("Peek finds a value while it is made")
		}
		if failing {
			return 0, errors.New("not now")
		}
		return 7, nil
	}
	if _, err := v.Get(); err == nil {
		t.Error("Get returns no error of Build")
	}
	if _, ok := v.Peek(); ok {
		t.Error("Peek finds a value that could not be made")
	}
	failing = false
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := v.Get(); got != 7 || err != nil {
				t.Errorf("Get returns %d, %v", got, err)
			}
		})
	}
	all.Wait()
	if got, ok := v.Peek(); got != 7 || !ok {
		t.Errorf("Peek returns %d, %t", got, ok)
	}
	if builds != 2 {
		t.Errorf("Build ran %d times, want 2", builds)
	}
}
