package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/run/queue"
	"ken/internal/run/runner"
	"ken/internal/testkit"
	"ken/internal/testkit/queuetest"
	"ken/internal/testkit/storetest"
)

// A shop is a queue with a worker.
type shop struct {
	*queue.Stored
	queuetest.Maker
	stop func() // of the worker; waits for its end
}

func open(t *testing.T, do queuetest.Tool, change func(*queue.WorkerConfig)) *shop {
	t.Helper()
	s := idle(t, storetest.Address(t), t.TempDir(), do)
	s.work(t, change)
	return s
}

// idle makes a shop without a worker.
func idle(t testing.TB, address, dir string, do queuetest.Tool, change ...func(*runner.Config)) *shop {
	t.Helper()
	s := storetest.Open(t, address)
	return &shop{Stored: queue.NewStored(s, queue.StoredConfig{Most: func() int { return 1e6 }}), Maker: queuetest.NewMaker(t, s, dir, do, change...)}
}

// work starts a worker, which is stopped with the test.
func (s *shop) work(t *testing.T, change func(*queue.WorkerConfig)) {
	t.Helper()
	cfg := queue.WorkerConfig{Queue: s.Stored, Maker: s.Maker, Drain: 10 * time.Second}
	if change != nil {
		change(&cfg)
	}
	w, err := queue.NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- w.Run(ctx, func() { close(ready) }) }()
	<-ready
	s.stop = sync.OnceFunc(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	t.Cleanup(s.stop)
}

func (s *shop) add(t *testing.T, target string, change func(*queue.Job)) queue.Job {
	t.Helper()
	j := queuetest.Job("ann", "ext", 0)
	j.Call.Target = capability.ID("tool:" + target)
	if change != nil {
		change(&j)
	}
	j, err := s.Add(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// until waits for a job to be as wanted.
func (s *shop) until(t *testing.T, id string, want func(queue.Job) bool) queue.Job {
	t.Helper()
	var j queue.Job
	if !testkit.Until(func() bool {
		var err error
		if j, err = s.Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return want(j)
	}) {
		t.Fatalf("the job is %+v", j)
	}
	return j
}

func is(states ...queue.State) func(queue.Job) bool {
	return func(j queue.Job) bool { return slices.Contains(states, j.State) }
}

func final(j queue.Job) bool { return j.State.Final() }

func text(s string) (capability.Result, error) {
	return capability.Result{Parts: []capability.Part{{Text: s}}}, nil
}

// counted counts its calls, and each ends with a text.
func counted(ran *atomic.Int32, said string) queuetest.Tool {
	return func(context.Context, capability.Call) (capability.Result, error) {
		ran.Add(1)
		return text(said)
	}
}

// TestWorkerRuns: a job runs as the one who added it, and its result is kept.
func TestWorkerRuns(t *testing.T) {
	var made atomic.Pointer[capability.Call]
	s := open(t, func(_ context.Context, call capability.Call) (capability.Result, error) {
		made.Store(&call)
		return text("written")
	}, nil)
	j := s.add(t, "write", nil)
	got := s.until(t, j.ID, final)
	res, ok, err := s.Result(t.Context(), j.ID)
	if got.State != queue.Done || err != nil || !ok || res.Parts[0].Text != "written" {
		t.Errorf("the job is %+v with %+v, %v, %v, want that it is done", got, res, ok, err)
	}
	if call := made.Load(); call == nil || call.Principal.ID != "ann" || call.Session != "s" || string(call.Arguments) != `{"text":"a"}` {
		t.Errorf("the call was %+v, want that of the job", call)
	}
}

// TestWorkerChecksAtStart: what the rules deny, or what was disabled since, does
// not run, and the job says why.
func TestWorkerChecksAtStart(t *testing.T) {
	var off atomic.Bool
	var ran atomic.Int32
	s := idle(t, storetest.Address(t), t.TempDir(), counted(&ran, "ran"), func(c *runner.Config) {
		resolve := c.Resolve
		c.Resolve = func(ctx context.Context, call capability.Call) (runner.Resolved, error) {
			res, err := resolve(ctx, call)
			if off.Load() {
				res.Disabled, res.Fix = "extension ext is disabled", "ken extension enable ext"
			}
			return res, err
		}
	})
	denied, disabled := s.add(t, "denied", nil), s.add(t, "write", nil)
	off.Store(true)
	s.work(t, nil)
	if got := s.until(t, denied.ID, final); got.State != queue.Failed || !strings.Contains(got.Why, "denied") && !strings.Contains(got.Why, "disabled") {
		t.Errorf("the denied job is %+v", got)
	}
	if got := s.until(t, disabled.ID, final); got.State != queue.Failed || !strings.Contains(got.Why, "extension ext is disabled") {
		t.Errorf("the job of a disabled extension is %+v, want that reason", got)
	}
	off.Store(false)
	if got := s.until(t, s.add(t, "denied", nil).ID, final); got.State != queue.Failed || got.Kind != "denied" || !strings.Contains(got.Why, "it is denied") {
		t.Errorf("the denied job is %+v, want the rule's reason", got)
	}
	if ran.Load() != 0 {
		t.Errorf("%d calls ran, want none", ran.Load())
	}
}

// TestWorkerApproval: a job waits for its approval, and runs once it is given; a
// denial fails it.
func TestWorkerApproval(t *testing.T) {
	var ran atomic.Int32
	s := open(t, counted(&ran, "destroyed"), nil)
	answer := func(yes approval.Effect, note string) queue.Job {
		j := s.add(t, "destroy", func(j *queue.Job) { j.Call.Arguments = json.RawMessage(fmt.Sprintf(`{"text":%q}`, note)) })
		waits := s.until(t, j.ID, is(queue.Waiting))
		if waits.Ticket == "" || !strings.Contains(waits.Why, "ken approve grant "+waits.Ticket) {
			t.Fatalf("the job is %+v, want the request that it waits for", waits)
		}
		if _, err := s.Desk.Settle(t.Context(), waits.Ticket, approval.Answer{By: capability.Principal{ID: "ann"}, Effect: yes, Scope: approval.Once, Note: note}); err != nil {
			t.Fatal(err)
		}
		return s.until(t, j.ID, final)
	}
	if got := answer(approval.Yes, "fine"); got.State != queue.Done || ran.Load() != 1 {
		t.Errorf("the approved job is %+v after %d calls, want done after one", got, ran.Load())
	}
	if got := answer(approval.No, "never"); got.State != queue.Failed || got.Kind != "denied" || !strings.Contains(got.Why, "never") || ran.Load() != 1 {
		t.Errorf("the denied job is %+v after %d calls, want failed with the reason", got, ran.Load())
	}
}

// TestWorkerRetries: only what is safe is tried again, as often as was asked.
func TestWorkerRetries(t *testing.T) {
	var mu sync.Mutex
	calls := map[capability.ID]int{}
	s := open(t, func(_ context.Context, call capability.Call) (capability.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		calls[call.Target]++
		if calls[call.Target] < 3 {
			return capability.Result{Failed: true, Parts: []capability.Part{{Text: "busy"}}}, nil
		}
		return text("at last")
	}, nil)
	twice := func(j *queue.Job) { j.Retries = 2 }
	look, repeat, write := s.add(t, "look", twice), s.add(t, "repeat", twice), s.add(t, "write", twice)
	for _, j := range []queue.Job{look, repeat} {
		if got := s.until(t, j.ID, final); got.State != queue.Done || got.Attempt != 2 {
			t.Errorf("%s is %+v, want done at the third attempt", j.Call.Target, got)
		}
	}
	if got := s.until(t, write.ID, final); got.State != queue.Failed || got.Attempt != 0 || !strings.Contains(got.Why, "not retried") {
		t.Errorf("tool:write is %+v, want failed at once and why it is not retried", got)
	}
}

// TestPostgresWorkerOutage: what became of a call cannot be read, because the store is away. The job does
// not end with that: the attempt is made again with the same key when the store is
// there, so a call that had its effect is not repeated.
func TestPostgresWorkerOutage(t *testing.T) {
	for _, target := range []string{"look", "write"} {
		o := storetest.NewOutage(t)
		var ran atomic.Int32
		s := idle(t, o.Address, t.TempDir(), func(context.Context, capability.Call) (capability.Result, error) {
			if ran.Add(1) > 1 {
				return text("at last")
			}
			o.Down()
			return capability.Result{}, &capability.Error{Kind: capability.Internal, Op: "write", Err: errors.New("no answer")}
		}, func(c *runner.Config) { c.Limits = runner.Limits{Record: 300 * time.Millisecond}.Always })
		s.work(t, func(c *queue.WorkerConfig) { c.Maker = &unread{Maker: s.Maker, back: o.Up} })
		j := s.add(t, target, nil)
		beside := &shop{Stored: queue.NewStored(storetest.Open(t, o.Beside), queue.StoredConfig{})}
		got := beside.until(t, j.ID, final)
		switch {
		case target == "look" && (got.State != queue.Done || ran.Load() != 2):
			t.Errorf("a job that changes nothing is %+v after %d calls, want done after two", got, ran.Load())
		case target == "write" && (got.State != queue.Unknown || got.Effect == "" || ran.Load() != 1):
			t.Errorf("a job with an effect is %+v after %d calls, want unknown, with its effect, after one", got, ran.Load())
		}
		s.stop()
	}
}

// unread is a maker whose store comes back once it could not be read.
type unread struct {
	queuetest.Maker
	back func()
}

func (m *unread) CallStatus(ctx context.Context, j queue.Job) (runner.CallStatus, bool, error) {
	fate, known, err := m.Maker.CallStatus(ctx, j)
	if err != nil {
		m.back()
	}
	return fate, known, err
}

// TestWorkerCancel: a running job is stopped. Whether it had its effect is unknown
// unless it changes nothing, or ends with a result, as a program does. Where the worker
// stopped, nobody knows what a program did.
func TestWorkerCancel(t *testing.T) {
	for _, program := range []bool{false, true} {
		began := make(chan struct{}, 3)
		s := open(t, func(ctx context.Context, _ capability.Call) (capability.Result, error) {
			began <- struct{}{}
			<-ctx.Done()
			if program {
				return capability.Result{Failed: true, Meta: map[string]string{runner.MetaEnd: "cancelled"}}, nil
			}
			return capability.Result{}, ctx.Err()
		}, func(c *queue.WorkerConfig) { c.Drain = 200 * time.Millisecond })
		look, write, stopped := s.add(t, "look", nil), s.add(t, "write", nil), s.add(t, "write", nil)
		for range cap(began) {
			<-began
		}
		for _, j := range []queue.Job{look, write} {
			if _, err := s.Cancel(t.Context(), j.ID, "ben"); err != nil {
				t.Fatal(err)
			}
			if got := s.until(t, j.ID, final); got.State != map[bool]queue.State{true: queue.Cancelled, false: queue.Unknown}[program || j.ID == look.ID] || !strings.Contains(got.Why, "by ben") {
				t.Errorf("program %v: %s is %+v after it was cancelled", program, j.Call.Target, got)
			}
		}
		s.stop()
		if got := s.until(t, stopped.ID, final); got.State != queue.Unknown || (got.Effect == "") != program || !strings.Contains(got.Why, "the worker is stopping") {
			t.Errorf("program %v: the job of a worker that stopped is %+v, want unknown", program, got)
		}
	}
}

// TestWorkerStops: a worker that is stopped lets its jobs end; one that does not
// end is unknown, or queued again where it changes nothing.
func TestWorkerStops(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 3)
	s := open(t, func(ctx context.Context, call capability.Call) (capability.Result, error) {
		began <- struct{}{}
		select {
		case <-release:
			return text("ended")
		case <-ctx.Done():
			return capability.Result{}, ctx.Err()
		}
	}, func(c *queue.WorkerConfig) { c.Drain = 200 * time.Millisecond })
	look, write := s.add(t, "look", nil), s.add(t, "write", nil)
	<-began
	<-began
	s.stop()
	if got := s.until(t, look.ID, is(queue.Queued)); got.Attempt != 0 {
		t.Errorf("tool:look is %+v, want queued again", got)
	}
	if got := s.until(t, write.ID, is(queue.Unknown)); !strings.Contains(got.Why, "the worker is stopping") {
		t.Errorf("tool:write is %+v, want unknown, because the worker stopped", got)
	}
	if members, err := s.Members(t.Context()); err != nil || len(members) != 0 {
		t.Errorf("Members() = %v, %v, want none", members, err)
	}
	close(release)
	s.work(t, nil)
	s.until(t, look.ID, is(queue.Done))
}

// TestWorkerForgotten: a job whose worker died longer ago than the runner
// remembers is unknown, and does not run.
func TestWorkerForgotten(t *testing.T) {
	var ran atomic.Int32
	s := idle(t, storetest.Address(t), t.TempDir(), counted(&ran, "ran"))
	j := s.add(t, "write", nil)
	if _, ok, err := queuetest.Claim(t.Context(), s, "dead", queue.Limits{}); !ok || err != nil {
		t.Fatal(err)
	}
	s.work(t, func(c *queue.WorkerConfig) { c.Remember = func() time.Duration { return time.Nanosecond } })
	got := s.until(t, j.ID, final)
	if got.State != queue.Unknown || !strings.Contains(got.Why, "limits.remember") || ran.Load() != 0 {
		t.Errorf("the job is %+v after %d calls, want unknown after none", got, ran.Load())
	}
	if _, err := s.Retry(t.Context(), j.ID, true); err != nil {
		t.Fatal(err)
	}
	s.until(t, j.ID, is(queue.Done))
}

// TestWorkerProgress: what a call says while it runs can be read.
func TestWorkerProgress(t *testing.T) {
	release := make(chan struct{})
	s := open(t, func(_ context.Context, call capability.Call) (capability.Result, error) {
		fmt.Fprintln(call.Live, "half of it")
		if r, ok := call.Live.(capability.Reporter); ok {
			r.Progress(1, 2, "copying")
		}
		<-release
		return text("done")
	}, nil)
	j := s.add(t, "look", nil)
	var p queue.Progress
	s.until(t, j.ID, func(queue.Job) bool {
		got, ok, err := s.Progress(t.Context(), j.ID)
		p = got
		return ok && err == nil
	})
	if p.Done != 1 || p.Total != 2 || p.Message != "copying" || p.Output != "half of it\n" {
		t.Errorf("Progress() = %+v", p)
	}
	close(release)
	s.until(t, j.ID, is(queue.Done))
}

// TestWorkerPriorityOrder: jobs, 8 at a time, end in order of their priorities:
// none ends before one of a higher priority, but for the seven that run beside it.
func TestWorkerPriorityOrder(t *testing.T) { inOrder(t, 40) }

// TestSoakWorkerPriorityOrder is the same for 1,000 jobs.
func TestSoakWorkerPriorityOrder(t *testing.T) {
	testkit.Nightly(t, "each job is written to disk several times")
	inOrder(t, 1000)
}

func inOrder(t *testing.T, jobs int) {
	const beside = 8
	s := idle(t, storetest.Address(t), t.TempDir(), counted(new(atomic.Int32), "looked"))
	for i := range jobs {
		s.add(t, "look", func(j *queue.Job) { j.Priority = (i*37)%21 - 10 })
	}
	s.work(t, func(c *queue.WorkerConfig) { c.Concurrent = func() int { return beside } })
	var list []queue.Job
	testkit.Wait(t, "all jobs are done", func() bool {
		var err error
		if list, err = s.List(t.Context(), queue.Filter{States: []queue.State{queue.Done}}); err != nil {
			t.Fatal(err)
		}
		return len(list) == jobs
	})
	slices.SortFunc(list, func(a, b queue.Job) int { return a.Started.Compare(b.Started) })
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if b.Priority > a.Priority || b.Priority == a.Priority && b.Added.Before(a.Added) {
			t.Fatalf("job %d with priority %d started before one with %d", i-1, a.Priority, b.Priority)
		}
	}
	place := map[string]int{}
	for i, j := range list {
		place[j.ID] = i
	}
	slices.SortFunc(list, func(a, b queue.Job) int { return a.Ended.Compare(b.Ended) })
	for i, j := range list {
		if off := place[j.ID] - i; off >= beside { // as many of those before it would run still
			t.Errorf("job %d ended as number %d, before more than the %d beside it", place[j.ID], i, beside-1)
		}
	}
}

// TestWorkerShare: two workers share a queue, and each job runs once.
func TestWorkerShare(t *testing.T) {
	var mu sync.Mutex
	ran := map[string]int{}
	s := open(t, func(_ context.Context, call capability.Call) (capability.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[string(call.Arguments)]++
		return text("written")
	}, nil)
	s.work(t, nil)
	var all []queue.Job
	for i := range 50 {
		all = append(all, s.add(t, "write", func(j *queue.Job) { j.Call.Arguments = json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, i)) }))
	}
	for _, j := range all {
		s.until(t, j.ID, is(queue.Done))
	}
	for args, n := range ran {
		if n != 1 {
			t.Errorf("the call with %s ran %d times", args, n)
		}
	}
}

// BenchmarkJobStart is the time from adding a job to its start by an idle worker
// that has the store open beside, as another process would.
func BenchmarkJobStart(b *testing.B) {
	address := storetest.Address(b)
	mine, theirs := storetest.Open(b, address), storetest.Open(b, address)
	q := queue.NewStored(mine, queue.StoredConfig{})
	m := queuetest.NewMaker(b, theirs, b.TempDir(), counted(new(atomic.Int32), "looked"))
	ended := make(chan queue.Job, 1)
	w, err := queue.NewWorker(queue.WorkerConfig{Queue: queue.NewStored(theirs, queue.StoredConfig{}), Maker: m, Record: func(j queue.Job) { ended <- j }})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- w.Run(ctx, func() { close(ready) }) }()
	<-ready
	defer func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}()
	var took []time.Duration
	for b.Loop() {
		j := queuetest.Job("ann", "ext", 0)
		j.Call.Target = "tool:look"
		if _, err := q.Add(ctx, j); err != nil {
			b.Fatal(err)
		}
		got := <-ended
		took = append(took, got.Started.Sub(got.Added))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "p50-ms")
}
