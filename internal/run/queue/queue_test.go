package queue_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/run/queue"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/queuetest"
	"ken/internal/testkit/storetest"
)

// TestStored runs the kit on the queue in a store: SQLite, or PostgreSQL where
// the tests have a server.
func TestStored(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) (a, b queue.Queue) {
		address := storetest.Address(t)
		return queue.NewStored(storetest.Open(t, address), queue.StoredConfig{}), queue.NewStored(storetest.Open(t, address), queue.StoredConfig{})
	})
}

// TestClaimPastUnreadable: a job that cannot be read, of a newer version of Ken
// for one, keeps no other from running, and is reported.
func TestClaimPastUnreadable(t *testing.T) {
	s := storetest.Open(t, storetest.Address(t))
	q := queue.NewStored(s, queue.StoredConfig{})
	ctx := t.Context()
	add := func(change func(*queue.Job)) queue.Job { return (&shop{Stored: q}).add(t, "write", change) }
	first := add(func(j *queue.Job) { j.Priority = 100 })
	gone := add(func(j *queue.Job) { j.Priority = 99 })
	due := add(func(j *queue.Job) { j.At = time.Now().Add(time.Millisecond) })
	later := add(func(j *queue.Job) { j.At = time.Now().Add(2 * time.Millisecond) })
	var b store.Batch
	b.Put("job/"+first.ID, []byte(`{"v":2}`))
	b.Put("job/"+due.ID, nil)
	b.Delete("job/" + gone.ID)
	if _, err := s.Apply(ctx, &b); err != nil {
		t.Fatal(err)
	}
	if err := q.Join(ctx, queue.Member{ID: "w"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	var j queue.Job
	var ok bool
	var err error
	testkit.Wait(t, "a job is claimed", func() bool {
		j, ok, err = queuetest.Claim(ctx, q, "w", queue.Limits{})
		return ok
	})
	if j.ID != later.ID {
		t.Fatalf("Claim() = %q, %v, %v, want %s", j.ID, ok, err, later.ID)
	}
	_, ok, err = queuetest.Claim(ctx, q, "w", queue.Limits{})
	if ok || err == nil {
		t.Fatalf("Claim() = %v, %v, want what cannot be read", ok, err)
	}
	for _, id := range []string{first.ID, due.ID, gone.ID} {
		if !strings.Contains(err.Error(), id) {
			t.Errorf("Claim() = %v, want it to name %s", err, id)
		}
	}
}

// TestPendingBound: one principal does not fill the queue, and others still add.
func TestPendingBound(t *testing.T) {
	q := queue.NewStored(storetest.Open(t, storetest.Address(t)), queue.StoredConfig{Most: func() int { return 3 }})
	ctx := t.Context()
	for i := range 3 {
		j := queuetest.Job("ann", "", 0)
		if i > 0 {
			j.At = time.Now().Add(time.Hour)
		}
		if _, err := q.Add(ctx, j); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := queuetest.Claim(ctx, q, "w", queue.Limits{}); !ok || err != nil {
		t.Fatalf("Claim() = %v, %v", ok, err)
	}
	_, err := q.Add(ctx, queuetest.Job("ann", "", 0))
	if e, ok := errors.AsType[*capability.Error](err); !ok || e.Kind != capability.Denied || e.Rule != "jobs.pending" {
		t.Errorf("Add() of one too many = %v, want denied by jobs.pending", err)
	}
	if _, err := q.Add(ctx, queuetest.Job("ben", "", 0)); err != nil {
		t.Errorf("Add() of another = %v", err)
	}
}

// TestLargeJob: what is too large is not taken.
func TestLargeJob(t *testing.T) {
	testkit.CI(t, "has arguments of 65 MB")
	q := queue.NewStored(storetest.Open(t, storetest.Address(t)), queue.StoredConfig{})
	large := queuetest.Job("cid", "", 0)
	large.Call.Arguments = json.RawMessage(`{"x":"` + strings.Repeat("x", 65<<20) + `"}`)
	if _, err := q.Add(t.Context(), large); capability.KindOf(err) != capability.Denied {
		t.Errorf("Add() of what is too large = %v, want denied", err)
	}
}

// TestScheduleKeepsRuns: the runs of a schedule do not pile up.
func TestScheduleKeepsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), "", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		q := queue.NewStored(s, queue.StoredConfig{})
		j := queuetest.Job("ann", "", 0)
		j.Schedule = "every 1s"
		if _, err := q.Add(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		for i := range 130 {
			time.Sleep(time.Second)
			run, ok, err := queuetest.Claim(t.Context(), q, "w", queue.Limits{})
			if !ok || err != nil {
				t.Fatalf("Claim() of run %d = %v, %v", i+1, ok, err)
			}
			if _, err := q.Finish(t.Context(), run, queue.Outcome{State: queue.Done, Result: &capability.Result{}}); err != nil {
				t.Fatal(err)
			}
		}
		runs, err := q.List(t.Context(), queue.Filter{States: []queue.State{queue.Done}})
		if err != nil || len(runs) != 100 {
			t.Errorf("%d runs are kept, %v, want 100", len(runs), err)
		}
	})
}
