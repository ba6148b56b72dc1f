package runner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/quota"
	"ken/internal/store"
	"ken/internal/store/storetest"
)

// TestPlacesOfAll: the limit per extension holds for two processes together, the calls of
// each come to their turn, and a process without the store says which limit it is.
func TestPlacesOfAll(t *testing.T) {
	address := storetest.Address(t)
	l, err := Limits{PerExtension: 3}.filled()
	if err != nil {
		t.Fatal(err)
	}
	newOne := func() (*limiter, *store.Store) {
		db, err := store.Open(t.Context(), address, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		q := quota.New(quota.Config{Store: func() (*store.Store, error) { return db, nil }, Lease: 3 * time.Second})
		t.Cleanup(q.Close)
		return newLimiter(l.Always, q.Slots("extension")), db
	}
	a, db := newOne()
	b, _ := newOne()
	var running atomic.Int64
	var all sync.WaitGroup
	for _, g := range []*limiter{a, b} {
		for range 8 {
			all.Go(func() {
				if err := g.enter(t.Context(), "x", whose{principal: "p", session: "s"}); err != nil {
					t.Error(err)
					return
				}
				if n := running.Add(1); n > 3 {
					t.Errorf("%d calls run at once, want at most 3", n)
				}
				time.Sleep(time.Millisecond) // the call
				running.Add(-1)
				g.leave("x")
			})
		}
	}
	all.Wait()
	for _, g := range []*limiter{a, b} {
		if load := len(g.loads); load > 0 || g.running > 0 || g.line.waiting > 0 {
			t.Errorf("%d extensions, %d running and %d waiting calls are left", load, g.running, g.line.waiting)
		}
	}

	_ = db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for err == nil { // the lease ends
		if err = a.enter(ctx, "x", whose{principal: "p"}); err == nil {
			a.leave("x")
		}
	}
	var e *capability.Error
	if !errors.As(err, &e) || e.Kind != capability.Unavailable || e.Rule != "limits.perExtension" || !strings.Contains(err.Error(), "the store does not answer") {
		t.Errorf("without the store a call gets %v", err)
	}
}
