package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/procid"
	"ken/internal/run/queue"
	"ken/internal/run/runner"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/queuetest"
	"ken/internal/testkit/storetest"
)

// TestPeerChild is a worker in a process of its own. With a time that its calls take
// it knows nothing of other processes, as one on another machine; 0 has no effect.
func TestPeerChild(t *testing.T) {
	dir := os.Getenv(peerDir)
	if dir == "" {
		t.Skip("cannot here: it is a process that the tests of several workers start")
	}
	s := storetest.Open(t, os.Getenv(peerStore))
	own := filepath.Join(dir, fmt.Sprint(os.Getpid()))
	do, remote := note(dir), os.Getenv(peerSlow)
	cfg := queue.WorkerConfig{Queue: queue.NewStored(s, queue.StoredConfig{}), Process: procid.Self(), Concurrent: func() int { return 4 }}
	if remote == "" {
		cfg.Dead, cfg.Maker = procid.Dead, queuetest.NewMaker(t, s, own, do)
	} else {
		slow, err := time.ParseDuration(remote)
		if err != nil {
			t.Fatal(err)
		}
		wait := func(ctx context.Context, call capability.Call) (capability.Result, error) {
			if slow == 0 {
				return text("done")
			}
			res, err := do(ctx, call)
			select {
			case <-time.After(slow):
			case <-ctx.Done():
			}
			return res, err
		}
		cfg.Maker = queuetest.NewMaker(t, s, own, wait, func(c *runner.Config) { c.Dead, c.Limits = nil, runner.Limits{}.Always })
		cfg.Concurrent, cfg.Limits = func() int { return 16 }, func() queue.Limits { return queue.Limits{PerGroup: 1000, PerPrincipal: 1000} }
	}
	w, err := queue.NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(context.Background(), func() { fmt.Println("READY", w.ID()) }); err != nil {
		t.Fatal(err)
	}
}

// peers starts workers in processes of their own, and returns them by the ids of
// the workers.
func peers(t testing.TB, n int, dir, address, slow string) map[string]*exec.Cmd {
	t.Helper()
	all := map[string]*exec.Cmd{}
	for range n {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestPeerChild$", "-test.count=1")
		cmd.Env = append(os.Environ(), peerDir+"="+dir, peerSlow+"="+slow, peerStore+"="+address)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // the test may have
		line, err := bufio.NewReader(out).ReadString('\n')
		id, ready := strings.CutPrefix(strings.TrimSpace(line), "READY ")
		if err != nil || !ready {
			t.Fatalf("the worker said %q, %v", line, err)
		}
		all[id] = cmd
	}
	return all
}

func addCall(t testing.TB, q queue.Queue, target string, i int) queue.Job {
	t.Helper()
	j, err := q.Add(context.Background(), queue.Job{Folder: "/", Group: "ext", Call: capability.Call{
		Target: capability.ID("tool:" + target), Arguments: json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, i)),
		Principal: capability.Principal{ID: "ann"}, Session: "s", Origin: capability.ByPerson,
	}})
	if err != nil {
		t.Error(err)
	}
	return j
}

// lostWorker has two workers run 12 jobs of three seconds, and kills one. It
// returns how long it takes until all have ended.
func lostWorker(t testing.TB) time.Duration {
	dir, address := t.TempDir(), storetest.Postgres(t)
	q := queue.NewStored(storetest.Open(t, address), queue.StoredConfig{})
	workers := peers(t, 2, dir, address, "3s")
	begin := time.Now()
	var all []queue.Job
	for i := range 12 {
		all = append(all, addCall(t, q, []string{"write", "repeat"}[i%2], i))
	}
	victim := ""
	until := func(what string, ok func([]queue.Job) bool) {
		t.Helper()
		testkit.Wait(t, what, func() bool {
			list, err := q.List(context.Background(), queue.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			return ok(list)
		})
	}
	until("all have begun", func([]queue.Job) bool { return len(effectsOf(t, dir)) == len(all) })
	for _, j := range all { // one that has something to lose
		j, err := q.Get(context.Background(), j.ID)
		if err != nil {
			t.Fatal(err)
		}
		if j.State == queue.Running && j.Call.Target == "tool:write" {
			victim = j.Worker
		}
	}
	if err := workers[victim].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until("all end", func(list []queue.Job) bool {
		return !slices.ContainsFunc(list, func(j queue.Job) bool { return !j.State.Final() })
	})
	took := time.Since(begin)
	states := verdict(t, q, dir, all)
	if states[queue.Unknown] == 0 {
		t.Errorf("the jobs are %v, want those of the killed worker that may not run twice to be unknown", states)
	}
	return took
}

// TestPostgresWorkerLost: the jobs of a worker that was killed on another machine
// end, and none that may not run twice does.
func TestPostgresWorkerLost(t *testing.T) { t.Log(lostWorker(t)) }

// BenchmarkPostgresWorkerLost measures how long that takes.
func BenchmarkPostgresWorkerLost(b *testing.B) {
	most := time.Duration(0)
	for b.Loop() {
		most = max(most, lostWorker(b))
	}
	b.ReportMetric(most.Seconds(), "settled-s")
}

// BenchmarkPostgresJobs has two workers run jobs with effects through the runner,
// while they are added.
func BenchmarkPostgresJobs(b *testing.B) {
	dir, address := b.TempDir(), storetest.Postgres(b)
	st := storetest.Open(b, address)
	q := queue.NewStored(st, queue.StoredConfig{Most: func() int { return 1e6 }})
	peers(b, 2, dir, address, "0s")
	empty := func() bool {
		for _, prefix := range []string{"jobs/next/", "jobs/running/"} {
			for range st.Scan(context.Background(), prefix, store.Range{Limit: 1}) {
				return false
			}
		}
		return true
	}
	const jobs, by = 4000, 32
	for b.Loop() {
		var waits []time.Duration // with nothing else to do
		for i := range 20 {
			j := addCall(b, q, "look", i)
			for !empty() {
				<-time.After(5 * time.Millisecond)
			}
			j, err := q.Get(context.Background(), j.ID)
			if err != nil {
				b.Fatal(err)
			}
			waits = append(waits, j.Started.Sub(j.Added))
		}
		begin := time.Now()
		var adding sync.WaitGroup
		for k := range by {
			adding.Go(func() {
				for i := k; i < jobs; i += by {
					addCall(b, q, "write", i)
				}
			})
		}
		adding.Wait()
		for !empty() {
			<-time.After(5 * time.Millisecond)
		}
		slices.Sort(waits)
		b.ReportMetric(jobs/time.Since(begin).Seconds(), "jobs/s")
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "start-p50-ms")
	}
}
