// Package queuetest tests what every kind of queue must do.
package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/queue"
	"ken/internal/testkit"
)

// Run tests the kind of queue that fresh opens: each time a new and empty one,
// as two processes would have it open.
func Run(t *testing.T, fresh func(testing.TB) (a, b queue.Queue)) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, a, b queue.Queue)
	}{
		{"keeps", keeps}, {"refuses", refuses}, {"order", order}, {"once", once}, {"limits", limits}, {"turns", turns}, {"many", many}, {"needs", needs}, {"at", at}, {"every", every},
		{"cancel", cancel}, {"cancel running", cancelRunning}, {"finish", finish}, {"approval", approves}, {"retry", retry},
		{"unknown", unknown}, {"recover", recovers}, {"lost", lost}, {"watch", watch}, {"follow", follow}, {"progress", progress}, {"large", large},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := fresh(t)
			c.test(t, a, b)
		})
	}
}

// Job returns a job of a principal and a group.
func Job(who, group string, priority int) queue.Job {
	return queue.Job{
		Call: capability.Call{
			Target: "tool:write", Arguments: json.RawMessage(`{"text":"a"}`), Principal: capability.Principal{ID: who}, Session: "s", Origin: capability.ByPerson,
		},
		Group: group, Priority: priority, Folder: "/work",
	}
}

func add(t *testing.T, q queue.Queue, j queue.Job) queue.Job {
	t.Helper()
	out, err := q.Add(t.Context(), j)
	if err != nil {
		t.Fatalf("Add() = %v", err)
	}
	return out
}

func get(t *testing.T, q queue.Queue, id string) queue.Job {
	t.Helper()
	j, err := q.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("Get(%s) = %v", id, err)
	}
	return j
}

// Claim takes one job, and reports false if there is none.
func Claim(ctx context.Context, q queue.Queue, worker string, limits queue.Limits) (queue.Job, bool, error) {
	jobs, err := q.Claim(ctx, queue.Ask{Worker: worker, Limits: limits})
	if err != nil || len(jobs) == 0 {
		return queue.Job{}, false, err
	}
	if len(jobs) > 1 {
		return queue.Job{}, false, fmt.Errorf("Claim() of one job returned %d", len(jobs))
	}
	return jobs[0], true, nil
}

// claim takes the next job, which must be there.
func claim(t *testing.T, q queue.Queue, worker string) queue.Job {
	t.Helper()
	j, ok, err := Claim(t.Context(), q, worker, queue.Limits{})
	if err != nil || !ok {
		t.Fatalf("Claim() = %v, %v, want a job", ok, err)
	}
	return j
}

func claimNone(t *testing.T, q queue.Queue) {
	t.Helper()
	if j, ok, err := Claim(t.Context(), q, "nobody", queue.Limits{}); ok || err != nil {
		t.Fatalf("Claim() = %+v, %v, %v, want nothing", j, ok, err)
	}
}

func end(t *testing.T, q queue.Queue, j queue.Job, o queue.Outcome) queue.Job {
	t.Helper()
	out, err := q.Finish(t.Context(), j, o)
	if err != nil {
		t.Fatalf("Finish(%s) = %v", j.ID, err)
	}
	return out
}

func wantKind(t *testing.T, what string, err error, kind capability.ErrorKind) {
	t.Helper()
	if err == nil || capability.KindOf(err) != kind {
		t.Errorf("%s = %v, want an error of kind %v", what, err, kind)
	}
}

// keeps: what was added is there for everybody, with an id and a state.
func keeps(t *testing.T, a, b queue.Queue) {
	j := add(t, a, Job("ann", "files", 3))
	if j.ID == "" || j.State != queue.Queued || j.Added.IsZero() {
		t.Fatalf("Add() = %+v, want an id, a time and queued", j)
	}
	got := get(t, b, j.ID)
	if got.Call.Target != "tool:write" || string(got.Call.Arguments) != `{"text":"a"}` || got.Call.Principal.ID != "ann" || got.Call.Session != "s" ||
		got.Call.Origin != capability.ByPerson || got.Priority != 3 || got.Folder != "/work" || got.Group != "files" {
		t.Errorf("Get() = %+v, want what was added", got)
	}
	other := add(t, b, Job("ben", "", 0))
	list, err := a.List(t.Context(), queue.Filter{})
	if err != nil || len(list) != 2 || list[0].ID != j.ID || list[1].ID != other.ID {
		t.Errorf("List() = %+v, %v, want both, the oldest first", list, err)
	}
	if list, _ := a.List(t.Context(), queue.Filter{Principal: "ben"}); len(list) != 1 || list[0].ID != other.ID {
		t.Errorf("List() of ben = %+v, want one", list)
	}
	if list, _ := a.List(t.Context(), queue.Filter{States: []queue.State{queue.Done}}); len(list) != 0 {
		t.Errorf("List() of done = %+v, want none", list)
	}
	if _, ok, err := a.Result(t.Context(), j.ID); ok || err != nil {
		t.Errorf("Result() = %v, %v, want none", ok, err)
	}
}

// refuses: what makes no sense is not kept.
func refuses(t *testing.T, a, _ queue.Queue) {
	for name, change := range map[string]func(*queue.Job){
		"no target":       func(j *queue.Job) { j.Call.Target = "" },
		"no principal":    func(j *queue.Job) { j.Call.Principal.ID = "" },
		"priority":        func(j *queue.Job) { j.Priority = 101 },
		"retries":         func(j *queue.Job) { j.Retries = -1 },
		"arguments":       func(j *queue.Job) { j.Call.Arguments = json.RawMessage(`{`) },
		"schedule":        func(j *queue.Job) { j.Schedule = "sometimes" },
		"cron that never": func(j *queue.Job) { j.Schedule = "cron 0 0 31 2 *" },
		"every nothing":   func(j *queue.Job) { j.Schedule = "every 0s" },
		"every century":   func(j *queue.Job) { j.Schedule = "every 876000h" },
		"before 1970":     func(j *queue.Job) { j.At = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC) },
		"year -1":         func(j *queue.Job) { j.At = time.Date(0, 1, 1, 0, 0, 0, 0, time.FixedZone("", 12*3600)) },
		"year 10000":      func(j *queue.Job) { j.At = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -12*3600)) },
	} {
		j := Job("ann", "", 0)
		change(&j)
		_, err := a.Add(t.Context(), j)
		wantKind(t, "Add() with "+name, err, capability.Invalid)
	}
	_, err := a.Get(t.Context(), "nothing")
	wantKind(t, "Get(nothing)", err, capability.NotFound)
	_, err = a.Get(t.Context(), "")
	wantKind(t, "Get()", err, capability.NotFound)
	_, err = a.Cancel(t.Context(), "nothing", "ann")
	wantKind(t, "Cancel(nothing)", err, capability.NotFound)
	if list, err := a.List(t.Context(), queue.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("List() = %v, %v, want nothing", list, err)
	}
}

// order: the highest priority first, and of one priority the oldest.
func order(t *testing.T, a, b queue.Queue) {
	var want []string
	for i, p := range []int{0, 5, -3, 5, 0, 100, -100} {
		j := add(t, a, Job("ann", "", p))
		want = append(want, fmt.Sprintf("%04d %d %s", queue.MaxPriority-p, i, j.ID))
	}
	slices.Sort(want)
	for _, w := range want {
		got := claim(t, b, "w")
		if !strings.HasSuffix(w, got.ID) || got.State != queue.Running || got.Worker != "w" || got.Started.IsZero() {
			t.Fatalf("Claim() = %s (%d), want %s", got.ID, got.Priority, w)
		}
	}
	claimNone(t, a)
}

// once: however many claim at the same time, each job is given away once.
func once(t *testing.T, a, b queue.Queue) {
	const jobs = 60
	for range jobs {
		add(t, a, Job("ann", "", 0))
	}
	var mu sync.Mutex
	taken := map[string]int{}
	var all sync.WaitGroup
	for i := range 4 {
		q := []queue.Queue{a, b}[i%2]
		all.Go(func() {
			for {
				j, ok, err := Claim(t.Context(), q, fmt.Sprint("w", i), queue.Limits{})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if ok {
					taken[j.ID]++
				}
				done := len(taken) == jobs
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	all.Wait()
	for id, n := range taken {
		if n != 1 {
			t.Errorf("job %s was given away %d times", id, n)
		}
	}
}

// limits: they hold over all workers, and what is held back does not hold back
// others.
func limits(t *testing.T, a, b queue.Queue) {
	for range 5 {
		add(t, a, Job("ann", "files", 9))
		add(t, a, Job("ben", "web", 0))
	}
	add(t, a, Job("cleo", "files", 0))
	set := queue.Limits{PerGroup: 2, PerPrincipal: 3}
	counts := map[string]int{}
	var held []queue.Job
	for i := range 12 {
		q := []queue.Queue{a, b}[i%2]
		j, ok, err := Claim(t.Context(), q, "w", set)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			counts[j.Group+" "+j.Call.Principal.ID]++
			held = append(held, j)
		}
	}
	if len(held) != 4 || counts["files ann"] != 2 || counts["web ben"] != 2 {
		t.Fatalf("claimed %v, want two of each group", counts)
	}
	end(t, b, held[0], queue.Outcome{State: queue.Done})
	if j, ok, err := Claim(t.Context(), a, "w", set); err != nil || !ok || j.Group != held[0].Group {
		t.Errorf("Claim() after one of %s ended = %+v, %v, %v, want another", held[0].Group, j, ok, err)
	}
	if j, ok, err := Claim(t.Context(), a, "w", queue.Limits{PerPrincipal: 2}); err != nil || !ok || j.Call.Principal.ID != "cleo" {
		t.Errorf("Claim() where ann and ben have two = %+v, %v, %v, want cleo's", j, ok, err)
	}
}

// turns: principals and their sessions take turns, however many jobs each has waiting.
// A higher priority goes first all the same.
func turns(t *testing.T, a, b queue.Queue) {
	for range 300 {
		add(t, a, Job("ann", "", 0))
	}
	other := Job("ann", "", 0)
	other.Call.Session = "other"
	other = add(t, a, other)
	quick, urgent := add(t, b, Job("ben", "", 0)), add(t, b, Job("ann", "", 1))
	first, err := a.Claim(t.Context(), queue.Ask{Worker: "w", Most: 8, Limits: queue.Limits{PerPrincipal: 8}})
	if err != nil || len(first) != 8 {
		t.Fatalf("Claim() = %d jobs, %v, want 8", len(first), err)
	}
	if first[0].ID != urgent.ID {
		t.Errorf("the first job is %s, want %s with the higher priority", first[0].ID, urgent.ID)
	}
	for _, want := range []queue.Job{quick, other} {
		if !slices.ContainsFunc(first, func(j queue.Job) bool { return j.ID == want.ID }) {
			t.Errorf("%s of %s in session %s is not among the first 8 jobs", want.ID, want.Call.Principal.ID, want.Call.Session)
		}
	}
	late := add(t, b, Job("cleo", "", 0))
	end(t, a, first[len(first)-1], queue.Outcome{State: queue.Done})
	for range 100 { // it is found behind many within a moment
		got, ok, err := Claim(t.Context(), a, "w", queue.Limits{PerPrincipal: 6})
		if err != nil {
			t.Fatal(err)
		}
		if ok && got.ID == late.ID {
			return
		}
		if ok {
			t.Fatalf("Claim() = %s of %s, want that of cleo", got.ID, got.Call.Principal.ID)
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Error("the job of cleo was not found behind those of ann")
}

// many: a claim takes several jobs, and each once.
func many(t *testing.T, a, b queue.Queue) {
	for i := range 20 {
		add(t, a, Job("ann", "", i))
	}
	taken := map[string]bool{}
	for i, want := range []int{16, 4, 0} {
		q := []queue.Queue{a, b}[i%2]
		jobs, err := q.Claim(t.Context(), queue.Ask{Worker: "w", Most: 16})
		if err != nil || len(jobs) != want {
			t.Fatalf("Claim() = %d jobs, %v, want %d", len(jobs), err, want)
		}
		for k, j := range jobs {
			if taken[j.ID] || k > 0 && j.Priority > jobs[k-1].Priority || get(t, a, j.ID).Worker != "w" {
				t.Errorf("Claim() = %+v as number %d of %v", j, k, jobs)
			}
			taken[j.ID] = true
			end(t, q, j, queue.Outcome{State: queue.Done})
		}
	}
}

// needs: a worker is not given a job that needs what it lacks, and workers say what
// they have.
func needs(t *testing.T, a, b queue.Queue) {
	special, plain := Job("ann", "", 9), Job("ann", "", 0)
	special.Needs = []string{queue.NeedProgram("ffmpeg"), queue.NeedSandbox("full")}
	special, plain = add(t, a, special), add(t, a, plain)
	lacks := func(needs []string) (out []string) {
		for _, n := range needs {
			if n == queue.NeedProgram("ffmpeg") {
				out = append(out, n)
			}
		}
		return out
	}
	jobs, err := a.Claim(t.Context(), queue.Ask{Worker: "w1", Most: 8, Lacks: lacks})
	if err != nil || len(jobs) != 1 || jobs[0].ID != plain.ID {
		t.Fatalf("Claim() without ffmpeg = %v, %v, want %s alone", jobs, err, plain.ID)
	}
	m := queue.Member{ID: "w1", Host: "north", Sandbox: "full", Most: 8, Running: 1, Lacks: special.Needs[:1]}
	if err := a.Join(t.Context(), m, time.Minute); err != nil {
		t.Fatal(err)
	}
	live, err := b.Members(t.Context())
	if err != nil || len(live) != 1 || live[0].Host != "north" || live[0].Sandbox != "full" || live[0].Most != 8 || live[0].Running != 1 {
		t.Fatalf("Members() = %+v, %v, want what w1 said", live, err)
	}
	want := "no live worker can run it: w1 on north has no program ffmpeg"
	if got := queue.Blocked(get(t, b, special.ID), live); got != want {
		t.Errorf("Blocked() = %q, want %q", got, want)
	}
	live = append(live, queue.Member{ID: "w2"})
	if got := queue.Blocked(get(t, b, special.ID), live); got != "" {
		t.Errorf("Blocked() with a worker that has it = %q", got)
	}
	jobs, err = b.Claim(t.Context(), queue.Ask{Worker: "w2", Most: 8, Lacks: func([]string) []string { return nil }})
	if err != nil || len(jobs) != 1 || jobs[0].ID != special.ID {
		t.Errorf("Claim() with ffmpeg = %v, %v, want %s", jobs, err, special.ID)
	}
}

// at: a job does not run before its time.
func at(t *testing.T, a, b queue.Queue) {
	j := Job("ann", "", 0)
	j.At = time.Now().Add(300 * time.Millisecond)
	j = add(t, a, j)
	later := Job("ann", "", 0)
	later.At = time.Now().Add(time.Hour)
	add(t, a, later)
	if j.State != queue.Scheduled {
		t.Errorf("Add() = %s, want scheduled", j.State)
	}
	due, ok, err := b.NextDue(t.Context())
	if err != nil || !ok || !due.Equal(j.At) {
		t.Fatalf("NextDue() = %v, %v, %v, want %v", due, ok, err, j.At)
	}
	claimNone(t, b)
	<-time.After(time.Until(due))
	if got := claim(t, b, "w"); got.ID != j.ID || got.Started.Before(j.At) {
		t.Errorf("Claim() = %+v, want the job at its time", got)
	}
	claimNone(t, a)
}

// every: a schedule adds a run each time, and none beside one that has not ended.
func every(t *testing.T, a, b queue.Queue) {
	j := Job("ann", "files", 7)
	j.Schedule, j.At = "every 1s", time.Now()
	j = add(t, a, j)
	run := claim(t, b, "w")
	if run.Parent != j.ID || run.Schedule != "" || run.Priority != 7 || run.Group != "files" || run.Call.Target != j.Call.Target || run.Key() == j.Key() {
		t.Fatalf("Claim() = %+v, want a run of %s", run, j.ID)
	}
	claimNone(t, b)
	plan := get(t, a, j.ID)
	if plan.State != queue.Scheduled || plan.Runs != 1 || plan.Last != run.ID || !plan.At.After(j.At) {
		t.Fatalf("the schedule is %+v, want its next time", plan)
	}
	<-time.After(time.Until(plan.At))
	claimNone(t, a)
	if plan = get(t, a, j.ID); plan.Skipped != 1 || plan.Why == "" {
		t.Errorf("the schedule is %+v, want one run left out, and why", plan)
	}
	end(t, a, run, queue.Outcome{State: queue.Done})
	<-time.After(time.Until(plan.At))
	if second := claim(t, a, "w"); second.Parent != j.ID || second.ID == run.ID {
		t.Errorf("Claim() = %+v, want the second run", second)
	}
	if runs, err := a.List(t.Context(), queue.Filter{Parent: j.ID}); err != nil || len(runs) != 2 {
		t.Errorf("List() of its runs = %v, %v, want two", runs, err)
	}
	if _, err := b.Cancel(t.Context(), j.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := a.NextDue(t.Context()); ok || err != nil {
		t.Errorf("NextDue() of a schedule that was cancelled = %v, %v, want nothing", ok, err)
	}
}

// cancel: a job that does not run is cancelled at once, and once.
func cancel(t *testing.T, a, b queue.Queue) {
	j := add(t, a, Job("ann", "", 0))
	got, err := b.Cancel(t.Context(), j.ID, "ben")
	if err != nil || got.State != queue.Cancelled || got.Why != "cancelled by ben" || got.Ended.IsZero() {
		t.Fatalf("Cancel() = %+v, %v", got, err)
	}
	claimNone(t, a)
	_, err = a.Cancel(t.Context(), j.ID, "ben")
	wantKind(t, "the second Cancel()", err, capability.Conflict)
}

// cancelRunning: the worker is told, whoever cancels, and the job ends as it says.
func cancelRunning(t *testing.T, a, b queue.Queue) {
	signals, err := a.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j := claimed(t, a)
	if got, err := b.Cancel(t.Context(), j.ID, "ben"); err != nil || got.State != queue.Running || got.CancelBy != "ben" {
		t.Fatalf("Cancel() = %+v, %v, want that it runs", got, err)
	}
	if s := await(t, signals, func(s queue.Signal) bool { return s.Cancel != "" }); s.Cancel != j.ID || s.By != "ben" {
		t.Errorf("the signal is %+v", s)
	}
	if got := end(t, a, j, queue.Outcome{State: queue.Cancelled, Why: "stopped"}); got.State != queue.Cancelled {
		t.Errorf("Finish() = %+v", got)
	}
	claimNone(t, a)
}

func claimed(t *testing.T, q queue.Queue) queue.Job {
	t.Helper()
	add(t, q, Job("ann", "", 0))
	return claim(t, q, "w")
}

func await(t *testing.T, signals <-chan queue.Signal, want func(queue.Signal) bool) queue.Signal {
	t.Helper()
	over := time.After(testkit.Patience)
	for {
		select {
		case s, open := <-signals:
			if !open {
				t.Fatal("the signals ended")
			}
			if want(s) {
				return s
			}
		case <-over:
			t.Fatal("the signal did not come")
		}
	}
}

// finish: what a job gave back can be read by everybody.
func finish(t *testing.T, a, b queue.Queue) {
	j := claimed(t, a)
	res := capability.Result{Parts: []capability.Part{{Text: "written"}}, Meta: map[string]string{"state": "COMPLETED"}}
	end(t, a, j, queue.Outcome{State: queue.Done, Result: &res})
	got := get(t, b, j.ID)
	if got.State != queue.Done || got.Ended.IsZero() || got.Worker != "w" {
		t.Errorf("Get() = %+v, want that it is done", got)
	}
	kept, ok, err := b.Result(t.Context(), j.ID)
	if err != nil || !ok || len(kept.Parts) != 1 || kept.Parts[0].Text != "written" || kept.Meta["state"] != "COMPLETED" {
		t.Errorf("Result() = %+v, %v, %v", kept, ok, err)
	}
	_, err = a.Finish(t.Context(), j, queue.Outcome{State: queue.Failed})
	if !errors.Is(err, queue.ErrLost) {
		t.Errorf("the second Finish() = %v, want ErrLost", err)
	}
}

// approves: a job that waits is made again with the request's id.
func approves(t *testing.T, a, b queue.Queue) {
	j := claimed(t, a)
	end(t, a, j, queue.Outcome{State: queue.Waiting, Ticket: "t1", Why: "waits"})
	claimNone(t, b)
	list, err := b.List(t.Context(), queue.Filter{States: []queue.State{queue.Waiting}})
	if err != nil || len(list) != 1 || list[0].Ticket != "t1" {
		t.Fatalf("List() of what waits = %+v, %v", list, err)
	}
	for range 2 { // two workers see the answer
		if err := b.Resume(t.Context(), list[0]); err != nil {
			t.Fatal(err)
		}
	}
	again := claim(t, b, "w2")
	if again.ID != j.ID || again.Key() != j.Key() || string(again.Call.Answers["consent"]) != `"t1"` {
		t.Errorf("Claim() = %+v, want the same attempt with the answer", again)
	}
	claimNone(t, a)
}

// retry: what failed is another attempt with another key; what is done is not
// made again.
func retry(t *testing.T, a, b queue.Queue) {
	j := claimed(t, a)
	_, err := b.Retry(t.Context(), j.ID, false)
	wantKind(t, "Retry() of what runs", err, capability.Conflict)
	end(t, a, j, queue.Outcome{State: queue.Failed, Why: "broken", Kind: "upstream", Result: &capability.Result{Failed: true}})
	got, err := b.Retry(t.Context(), j.ID, false)
	if err != nil || got.State != queue.Queued || got.Attempt != 1 || got.Key() == j.Key() || got.Why != "" || got.Kind != "" {
		t.Fatalf("Retry() = %+v, %v, want another attempt", got, err)
	}
	if _, ok, err := b.Result(t.Context(), j.ID); ok || err != nil {
		t.Errorf("Result() = %v, %v, want that of the earlier attempt gone", ok, err)
	}
	second := claim(t, a, "w")
	end(t, a, second, queue.Outcome{State: queue.Scheduled, At: time.Now().Add(-time.Second), Next: true})
	third := claim(t, a, "w")
	if third.ID != j.ID || third.Attempt != 2 {
		t.Errorf("Claim() = %+v, want the third attempt", third)
	}
	end(t, a, third, queue.Outcome{State: queue.Done})
	_, err = a.Retry(t.Context(), j.ID, true)
	wantKind(t, "Retry() of what is done", err, capability.Conflict)
}

// unknown: what may have had its effect is made again only when a person says so,
// with its key.
func unknown(t *testing.T, a, b queue.Queue) {
	j := claimed(t, a)
	end(t, a, j, queue.Outcome{State: queue.Unknown, Effect: "e1", Why: "its worker died"})
	_, err := b.Retry(t.Context(), j.ID, false)
	wantKind(t, "Retry() of what is unknown", err, capability.Conflict)
	claimNone(t, a)
	got, err := b.Retry(t.Context(), j.ID, true)
	if err != nil || got.Key() != j.Key() || string(got.Call.Answers["run_again"]) != `"e1"` {
		t.Errorf("Retry() with again = %+v, %v, want the same key and the answer", got, err)
	}
	if again := claim(t, a, "w"); again.ID != j.ID {
		t.Errorf("Claim() = %+v", again)
	}
}

// recovers: what a dead worker ran is queued again as the same attempt, and what a
// living one runs is not.
func recovers(t *testing.T, a, b queue.Queue) {
	for _, m := range []queue.Member{{ID: "dead", Process: "1"}, {ID: "alive", Process: "2"}} {
		if err := a.Join(t.Context(), m, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if members, err := b.Members(t.Context()); err != nil || len(members) != 2 {
		t.Fatalf("Members() = %v, %v", members, err)
	}
	for range 3 {
		add(t, a, Job("ann", "", 0))
	}
	died, lives, left := claim(t, a, "dead"), claim(t, a, "alive"), claim(t, a, "left")
	dead := func(process string) bool { return process == "1" }
	got, err := b.Recover(t.Context(), dead)
	if err != nil || len(got) != 2 {
		t.Fatalf("Recover() = %+v, %v, want two", got, err)
	}
	for _, j := range []queue.Job{died, left} {
		again := claim(t, b, "w")
		if again.ID != j.ID || again.Key() != j.Key() || !again.Orphaned.Equal(j.Started) {
			t.Errorf("Claim() = %+v, want the same attempt of %s", again, j.ID)
		}
		if _, err := a.Finish(t.Context(), j, queue.Outcome{State: queue.Done}); !errors.Is(err, queue.ErrLost) {
			t.Errorf("Finish() by the dead = %v, want ErrLost", err)
		}
	}
	if err := a.Leave(t.Context(), "alive"); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Recover(t.Context(), dead); err != nil || len(got) != 3 {
		t.Errorf("Recover() once nobody is alive = %v, %v, want three", got, err)
	}
	if again := claim(t, a, "w"); again.ID != died.ID && again.ID != lives.ID && again.ID != left.ID {
		t.Errorf("Claim() = %+v", again)
	}
}

// lost: a cancel that its worker did not live to see is not forgotten.
func lost(t *testing.T, a, b queue.Queue) {
	j := claimed(t, a)
	if _, err := b.Cancel(t.Context(), j.ID, "ben"); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Recover(t.Context(), nil); err != nil || len(got) != 1 {
		t.Fatalf("Recover() = %v, %v", got, err)
	}
	if again := claim(t, b, "w2"); again.CancelBy != "ben" || again.Key() != j.Key() {
		t.Errorf("Claim() = %+v, want who cancelled it", again)
	}
}

// watch: what somebody else adds is heard of.
func watch(t *testing.T, a, b queue.Queue) {
	ctx, stop := context.WithCancel(t.Context())
	signals, err := a.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for heard, deadline := false, time.Now().Add(testkit.Patience); !heard; {
		if time.Now().After(deadline) {
			t.Fatal("nothing was heard")
		}
		add(t, b, Job("ann", "", 0)) // the watch may have begun after the first
		select {
		case <-signals:
			heard = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	stop()
	over := time.After(testkit.Patience)
	for {
		select {
		case _, open := <-signals:
			if !open {
				return
			}
		case <-over:
			t.Fatal("the signals do not end")
		}
	}
}

// progress: how far a job has come can be read while it runs.
func progress(t *testing.T, a, b queue.Queue) {
	j := claimed(t, a)
	if _, ok, err := b.Progress(t.Context(), j.ID); ok || err != nil {
		t.Errorf("Progress() = %v, %v, want none", ok, err)
	}
	for i := range 2 {
		if err := a.Report(t.Context(), j.ID, queue.Progress{Done: float64(i + 1), Total: 4, Message: "copying", Output: "x\n", At: time.Now().UTC()}); err != nil {
			t.Fatal(err)
		}
	}
	if p, ok, err := b.Progress(t.Context(), j.ID); err != nil || !ok || p.Done != 2 || p.Total != 4 || p.Message != "copying" || p.Output != "x\n" {
		t.Errorf("Progress() = %+v, %v, %v", p, ok, err)
	}
	end(t, a, j, queue.Outcome{State: queue.Done})
	if _, ok, err := b.Progress(t.Context(), j.ID); ok || err != nil {
		t.Errorf("Progress() of what ended = %v, %v, want none", ok, err)
	}
}

// large: a result that is too large to keep says so, and the job ends.
func large(t *testing.T, a, b queue.Queue) {
	j := claimed(t, a)
	res := capability.Result{Handle: "h1", Parts: []capability.Part{{Data: make([]byte, 9<<20), MIME: "image/png"}}}
	if got := end(t, a, j, queue.Outcome{State: queue.Done, Result: &res}); got.State != queue.Done {
		t.Fatalf("Finish() = %+v", got)
	}
	kept, ok, err := b.Result(t.Context(), j.ID)
	if err != nil || !ok || kept.Handle != "h1" || len(kept.Parts) != 1 || !strings.Contains(kept.Parts[0].Text, "too large") {
		t.Errorf("Result() = %+v, %v, %v, want that it was too large", kept, ok, err)
	}
}

// follow: who follows jobs is told of each change, and of the progress of the one
// that is asked for.
func follow(t *testing.T, a, b queue.Queue) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	all, err := a.Follow(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	j := add(t, b, Job("ann", "g", 0))
	one, err := a.Follow(ctx, j.ID)
	if err != nil {
		t.Fatal(err)
	}
	other := add(t, b, Job("bob", "g", -1))
	taken := claim(t, b, "w")
	if err := b.Report(ctx, j.ID, queue.Progress{Done: 1, Total: 2, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	reported := false
	for state := queue.State(""); state != queue.Done; {
		select {
		case got := <-one:
			if got.ID != j.ID {
				t.Fatalf("Follow(%s) sent job %s", j.ID, got.ID)
			}
			state = got.State
			if _, ok, _ := a.Progress(ctx, j.ID); ok && state == queue.Running && !reported {
				reported = true
				if _, err := b.Finish(ctx, taken, queue.Outcome{State: queue.Done, Result: &capability.Result{}}); err != nil {
					t.Fatal(err)
				}
			}
		case <-time.After(testkit.Patience):
			t.Fatalf("Follow(%s) sent nothing more; the last state was %q", j.ID, state)
		}
	}
	seen := map[string]queue.State{}
	for seen[j.ID] != queue.Done || seen[other.ID] != queue.Queued {
		select {
		case got := <-all:
			seen[got.ID] = got.State
		case <-time.After(testkit.Patience):
			t.Fatalf("Follow() sent %v, want both jobs", seen)
		}
	}
	stop()
	for range all { // it is closed
	}
}
