package runner

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGateNeverGoesBack: limits that were asked for earlier do not replace later
// ones, however long it took to get them.
func TestGateNeverGoesBack(t *testing.T) {
	old, _ := Limits{Concurrent: 1}.filled()
	newer, _ := Limits{Concurrent: 3}.filled()
	var asked atomic.Int64
	first, release := make(chan struct{}), make(chan struct{})
	g := newLimiter(func() Limits {
		if asked.Add(1) == 1 {
			close(first)
			<-release
			return old
		}
		return newer
	}, nil)
	var both sync.WaitGroup
	both.Go(func() { _, _ = g.ask("a", whose{}) })
	<-first
	second := make(chan struct{})
	both.Go(func() { _, _ = g.ask("b", whose{}); close(second) })
	select {
	case <-second: // it did not wait for the first, whose limits are older
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	both.Wait()
	if g.limits != newer {
		t.Errorf("%d calls may run at once, want %d", g.limits.Concurrent, newer.Concurrent)
	}
}

// TestBoundsAreAskedForWithEveryCall: a call is held to the limits as they are
// when it begins; impossible limits change nothing.
func TestBoundsAreAskedForWithEveryCall(t *testing.T) {
	bounds := Limits{ArgumentBytes: 5, Lease: time.Minute}
	r := newRig(t, tool{}, func(c *Config) { c.Limits = func() Limits { return bounds } })
	bounds.Lease = time.Hour
	for _, c := range []struct {
		bytes  int
		refuse string
	}{{1000, ""}, {20, "limits.argumentBytes (20)"}, {-1, "limits.argumentBytes (5"}} {
		bounds.ArgumentBytes = c.bytes
		_, err := r.Invoke(t.Context(), callOf("look", `{"text":"some words here"}`))
		if (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("with argumentBytes %d the call = %v, want %q", c.bytes, err, c.refuse)
		}
	}
	if l := r.bounds(); l.Lease != time.Minute {
		t.Errorf("the lease is %v, want that of the start", l.Lease)
	}
}
