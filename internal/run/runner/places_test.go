package runner

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/quota"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestPlacesOfAll: limits hold for three processes together, the calls of each come to
// their turn, and a process without the store says which limit it is.
func TestPlacesOfAll(t *testing.T) {
	testkit.CI(t, "limiters of three processes wait for each other")
	for _, tt := range []struct {
		name   string
		limits Limits
		most   int64
		knob   string
	}{
		{"extension", Limits{PerExtension: 4}, 4, "limits.perExtension"},
		{"principal", Limits{PerPrincipal: 4}, 4, "limits.perPrincipal"},
		{"tenant", Limits{PerTenant: 4}, 4, "limits.perTenant"},
		// Each process needs a place of three kinds at once, of which there are fewer than processes.
		{"all", Limits{PerExtension: 1, PerPrincipal: 2, PerTenant: 2}, 1, "limits.perTenant"},
		{"the reverse", Limits{PerExtension: 2, PerPrincipal: 2, PerTenant: 1}, 1, "limits.perTenant"},
	} {
		t.Run(tt.name, func(t *testing.T) { placesOfAll(t, tt.limits, tt.most, tt.knob) })
	}
}

func placesOfAll(t *testing.T, limits Limits, most int64, knob string) {
	address := storetest.Address(t)
	l, err := limits.filled()
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
		return newLimiter(l.Always, func(kind string) Places { return q.Slots(kind) }), db
	}
	a, db := newOne()
	b, _ := newOne()
	c, _ := newOne()
	var running atomic.Int64
	var all sync.WaitGroup
	who := whose{principal: "p", session: "s", tenant: "t"}
	for _, g := range []*limiter{a, b, c} {
		for range 8 {
			all.Go(func() {
				if err := g.enter(t.Context(), "x", who); err != nil {
					t.Error(err)
					return
				}
				if n := running.Add(1); n > most {
					t.Errorf("%d calls run at once, want at most %d", n, most)
				}
				runtime.Gosched() // the call
				running.Add(-1)
				g.leave("x", who)
			})
		}
	}
	all.Wait()
	for _, g := range []*limiter{a, b, c} {
		if g.known() > 0 || g.running > 0 || g.line.waiting > 0 {
			t.Errorf("%d loads, %d running and %d waiting calls are left", g.known(), g.running, g.line.waiting)
		}
	}

	_ = db.Close()
	var e *capability.Error
	// The leases end one after the other. The last one to end may be that of the limit.
	testkit.Wait(t, "a call is refused", func() bool {
		if err = a.enter(t.Context(), "x", who); err == nil {
			a.leave("x", who)
		}
		return errors.As(err, &e) && e.Rule == knob
	})
	if e.Kind != capability.Unavailable || !strings.Contains(err.Error(), "the store does not answer") {
		t.Errorf("without the store a call gets %v", err)
	}
}
