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

// TestRateTotal: three processes that ask as often as they can do together what one may,
// and each of them gets a part.
func TestRateTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		address := storetest.SQLite(t)
		const perSecond, burst, processes = 200, 40, 3
		var all sync.WaitGroup
		var total atomic.Int64
		var each [processes]atomic.Int64
		began := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		// It ends after three seconds, once each process was let in often enough.
		enough := func() bool {
			for i := range each {
				if each[i].Load() < perSecond/20 {
					return false
				}
			}
			return time.Since(began) > 3*time.Second
		}
		for i := range processes {
			q, _ := process(t, address, 0)
			r := q.Rate("principal", "ada", perSecond, burst)
			for range 4 {
				all.Go(func() {
					for {
						if wait, err := r.Wait(ctx, time.Minute); err != nil {
							if !errors.Is(err, context.Canceled) {
								t.Errorf("%v; each was let in %d, %d, %d times", err, each[0].Load(), each[1].Load(), each[2].Load())
							}
							return
						} else if wait > 0 {
							t.Errorf("the turn is %v away", wait)
							return
						}
						total.Add(1)
						each[i].Add(1)
						if enough() {
							stop()
						}
					}
				})
			}
		}
		all.Wait()
		took := time.Since(began).Seconds()
		most := (burst + perSecond*took) * (1 + float64(processes-1)/alone)
		most += 3 * processes // the least burst of a process is 1, and it may use one without a share
		t.Logf("%d in %.2f s; at most %.0f are allowed: %d, %d, %d", total.Load(), took, most, each[0].Load(), each[1].Load(), each[2].Load())
		if n := float64(total.Load()); n > most {
			t.Errorf("%.0f were let in within %.2f s, want at most %.0f", n, took, most)
		}
	})
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

// TestRateNewcomer: a process whose requests wait for turns of seconds gives them up when
// another process gets a part.
func TestRateNewcomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		address := storetest.SQLite(t)
		const perSecond, burst = 100, 1
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var all sync.WaitGroup
		var admitted [2]atomic.Int64
		begin := func(i, waiters int) {
			q, _ := process(t, address, 0)
			r := q.Rate("principal", "ada", perSecond, burst)
			for range waiters {
				all.Go(func() {
					for ctx.Err() == nil {
						if wait, err := r.Wait(ctx, time.Minute); err != nil || wait > 0 {
							return
						}
						admitted[i].Add(1)
					}
				})
			}
		}
		began := time.Now()
		begin(0, 300) // three seconds of turns
		for admitted[0].Load() < perSecond/2 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		begin(1, 300)
		for admitted[1].Load() < perSecond && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		n, took := float64(admitted[0].Load()+admitted[1].Load()), time.Since(began).Seconds()
		stop()
		all.Wait()
		most := (burst+perSecond*took)*(1+1.0/alone) + 3*2
		t.Logf("%.0f in %.2f s; at most %.0f are allowed: %d, %d", n, took, most, admitted[0].Load(), admitted[1].Load())
		if n > most {
			t.Errorf("%.0f were let in within %.2f s, want at most %.0f", n, took, most)
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
