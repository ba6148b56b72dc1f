package quota

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// TestRateTotal: processes that ask as often as they can do together what one may, and
// each of them gets a part; also one that comes when the requests of another wait for
// turns of seconds, which that one gives up.
func TestRateTotal(t *testing.T) {
	for _, tt := range []struct {
		perSecond          float64
		burst              int
		processes, waiters int
		oneByOne           bool
	}{
		{perSecond: 200, burst: 40, processes: 3, waiters: 4},
		{perSecond: 100, burst: 1, processes: 2, waiters: 300, oneByOne: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			address := storetest.SQLite(t)
			ctx, stop := context.WithCancel(t.Context())
			admitted := make([]atomic.Int64, tt.processes)
			var all sync.WaitGroup
			began := time.Now()
			for i := range tt.processes {
				q, _ := process(t, address, 0)
				r := q.Rate("principal", "ada", tt.perSecond, tt.burst)
				for range tt.waiters {
					all.Go(func() {
						for {
							wait, err := r.Wait(ctx, time.Minute)
							if ctx.Err() != nil {
								return
							}
							if err != nil || wait > 0 {
								t.Errorf("the turn is %v away: %v", wait, err)
								return
							}
							admitted[i].Add(1)
						}
					})
				}
				for tt.oneByOne && float64(admitted[i].Load()) < tt.perSecond/2 {
					time.Sleep(time.Millisecond)
				}
			}
			time.Sleep(3 * time.Second)
			n, took := 0.0, time.Since(began).Seconds()
			for i := range admitted {
				if n += float64(admitted[i].Load()); float64(admitted[i].Load()) < tt.perSecond/20 {
					t.Errorf("process %d was let in %d times", i, admitted[i].Load())
				}
			}
			stop()
			all.Wait()
			most := (float64(tt.burst) + tt.perSecond*took) * (1 + float64(tt.processes-1)/alone)
			most += 3 * float64(tt.processes) // the least burst of a process is 1, and it may use one without a share
			if n > most {
				t.Errorf("%.0f were let in within %.2f s, want at most %.0f", n, took, most)
			}
		})
	}
}

// TestRateAlone: what is asked for now and then needs no store, and a burst after a pause
// is let in at once.
func TestRateAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("no store")
		q := New(Config{Store: func() (*store.Store, error) { return nil, broken }})
		defer q.Close()
		r := q.Rate("principal", "ada", 50, 200)
		for range 2 { // 200/100
			if wait, err := r.Wait(t.Context(), time.Second); wait != 0 || err != nil {
				t.Errorf("Wait = %v, %v without a store, for the first requests", wait, err)
			}
		}
		if _, err := r.Wait(t.Context(), time.Minute); !errors.Is(err, broken) {
			t.Errorf("Wait = %v for more than that, want the error of the store", err)
		}
		left := func() int {
			q.mu.Lock()
			defer q.mu.Unlock()
			return len(q.shares)
		}
		for left() > 0 { // a rate that is asked for no more is forgotten, also while there is no store
			time.Sleep(time.Second)
		}

		q, _ = process(t, storetest.SQLite(t), 0)
		r = q.Rate("principal", "ada", 1, 100)
		for i := range 50 {
			if wait, err := r.Wait(t.Context(), 20*time.Second); wait != 0 || err != nil {
				t.Fatalf("request %d of a burst: %v, %v", i, wait, err)
			}
		}
	})
}

// TestRateAway: every request that waits is told that there is no store, and one that comes
// when there is one again is not.
func TestRateAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), storetest.SQLite(t), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		broken := errors.New("no store")
		var there atomic.Bool
		q := New(Config{Store: func() (*store.Store, error) {
			if there.Load() {
				return db, nil
			}
			return nil, broken
		}})
		defer q.Close()
		r := q.Rate("principal", "ada", 50, 100)
		if wait, err := r.Wait(t.Context(), time.Minute); wait != 0 || err != nil { // 100/100
			t.Fatalf("Wait = %v, %v for the first request", wait, err)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := r.Wait(t.Context(), time.Minute); !errors.Is(err, broken) {
					t.Errorf("Wait = %v, want the error of the store", err)
				}
			})
		}
		all.Wait()
		there.Store(true)
		if wait, err := r.Wait(t.Context(), time.Minute); wait != 0 || err != nil {
			t.Errorf("Wait = %v, %v when the store is there again", wait, err)
		}
		if q.Rate("principal", "ada", 50, 100) != r {
			t.Error("there are two rates of one principal")
		}
	})
}
