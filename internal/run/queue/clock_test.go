package queue

import (
	"testing"
	"time"

	"ken/capability"
	"ken/internal/testkit/storetest"
)

// TestRealign: a clock that was 400 days ahead for a while does not keep a schedule
// or a retry from running for 400 days. A time that a person chose stays.
func TestRealign(t *testing.T) {
	q := NewStored(storetest.Open(t, storetest.SQLite(t)), StoredConfig{})
	ctx := t.Context()
	right := time.Now()
	clock := right.Add(400 * 24 * time.Hour)
	q.now = func() time.Time { return clock }
	add := func(change func(*Job)) Job {
		t.Helper()
		j := Job{Call: capability.Call{Target: "tool:x", Principal: capability.Principal{ID: "ann"}}}
		change(&j)
		j, err := q.Add(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	hourly := add(func(j *Job) { j.Schedule, j.At = "every 1h", clock })
	nightly := add(func(j *Job) { j.Schedule, j.At = "cron 0 3 * * *", clock })
	chosen := add(func(j *Job) { j.At = clock.Add(time.Hour) })
	first := add(func(j *Job) { j.Schedule, j.At = "every 1h", clock.Add(time.Hour) }) // it has not run yet
	retried := add(func(j *Job) { j.Priority = 100 })
	for range 3 {
		jobs, err := q.Claim(ctx, Ask{Worker: "w"})
		if len(jobs) != 1 || err != nil {
			t.Fatalf("Claim() = %v, %v", jobs, err)
		}
		j := jobs[0]
		o := Outcome{State: Done}
		if j.ID == retried.ID {
			o = Outcome{State: Scheduled, At: clock.Add(time.Second), Next: true}
		}
		if _, err := q.Finish(ctx, j, o); err != nil {
			t.Fatal(err)
		}
	}
	clock = right
	if n, err := q.Realign(ctx); n != 3 || err != nil {
		t.Errorf("Realign() = %d, %v, want 3 jobs", n, err)
	}
	for _, tt := range []struct {
		id    string
		until time.Duration // from now
		far   bool
	}{{hourly.ID, time.Hour, false}, {nightly.ID, 25 * time.Hour, false}, {retried.ID, longestRetry, false}, {chosen.ID, 0, true}, {first.ID, 0, true}} {
		j, err := q.Get(ctx, tt.id)
		if err != nil || !tt.far && j.At.After(right.Add(tt.until)) || tt.far && j.At.Before(right.Add(399*24*time.Hour)) {
			t.Errorf("job %s (%s) is due at %v, %v", tt.id, j.Schedule, j.At, err)
		}
	}
	if n, err := q.Realign(ctx); n != 0 || err != nil {
		t.Errorf("Realign() again = %d, %v, want none", n, err)
	}
	clock = right.Add(25 * time.Hour)
	seen := map[string]bool{}
	for {
		jobs, err := q.Claim(ctx, Ask{Worker: "w"})
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) == 0 {
			break
		}
		j := jobs[0]
		seen[j.Parent+j.ID] = true
	}
	if len(seen) != 3 {
		t.Errorf("a day later %v run, want a run of each schedule and the retry", seen)
	}
}

// TestSetBack: only a step back counts.
func TestSetBack(t *testing.T) {
	now := time.Now()
	later := now.Add(time.Hour)
	if setBack(now, later) || setBack(now, now) {
		t.Error("a clock that runs was taken for one that was set back")
	}
	if wall := now.Round(0); setBack(wall, wall.Add(time.Hour)) {
		t.Error("a reading without a monotonic part was taken for a step")
	}
}
