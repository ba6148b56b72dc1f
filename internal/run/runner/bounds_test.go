package runner

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGateTakesOtherLimits: what waits goes on as soon as there is room, and what
// runs goes on where there is less.
func TestGateTakesOtherLimits(t *testing.T) {
	one, _ := Limits{Concurrent: 1, PerExtension: 1}.filled()
	three, _ := Limits{Concurrent: 3, PerExtension: 3}.filled()
	now := one
	g := newLimiter(func() Limits { return now }, nil)
	if err := g.enter(t.Context(), "a", whose{}); err != nil {
		t.Fatal(err)
	}
	w, err := g.ask("a", whose{})
	if w == nil || err != nil {
		t.Fatalf("ask = %v, %v, want to wait", w, err)
	}
	now = three
	if w, err := g.ask("b", whose{}); w != nil || err != nil {
		t.Errorf("ask = %v, %v with two of three running, want a place", w, err)
	}
	if !w.admitted {
		t.Error("what waited still does, with room for three")
	}
	if g.leave("b", whose{}); g.running != 2 {
		t.Errorf("%d run, want two", g.running)
	}
	now = one
	if w, err := g.ask("a", whose{}); w == nil || err != nil {
		t.Errorf("ask = %v, %v with two running and room for one, want to wait", w, err)
	}
	if g.running != 2 {
		t.Errorf("%d run, want both", g.running)
	}
	// A call that leaves checks the limits too: the two that wait then both go on.
	v, err := g.ask("a", whose{})
	if v == nil || err != nil {
		t.Fatalf("ask = %v, %v, want to wait", v, err)
	}
	now = three
	if g.leave("a", whose{}); g.running != 3 || g.line.waiting != 0 {
		t.Errorf("%d run and %d wait after one of two has left and there is room for three, want 3 and 0", g.running, g.line.waiting)
	}
}

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
