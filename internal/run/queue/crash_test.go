package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/procid"
	"ken/internal/run/queue"
	"ken/internal/testkit/storetest"
)

const (
	crashDir   = "KEN_QUEUE_TEST_DIR"
	crashStore = "KEN_QUEUE_TEST_STORE"
)

// note has an effect that can be counted: one line more in a file, which is
// written as a whole.
func note(dir string) tool {
	return func(_ context.Context, call capability.Call) (capability.Result, error) {
		f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return capability.Result{}, err
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, "%s %s\n", call.Target, call.Arguments); err != nil {
			return capability.Result{}, err
		}
		return text("noted")
	}
}

// TestCrashChild is the worker that dies; it is run by TestWorkerKilled.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("cannot here: it is the process that TestWorkerKilled starts and kills")
	}
	s := storetest.Open(t, os.Getenv(crashStore))
	w, err := queue.NewWorker(queue.WorkerConfig{
		Queue: queue.NewStored(s, queue.StoredConfig{}), Maker: newMaker(t, s, dir, note(dir), nil), Process: procid.Self(), Dead: procid.Dead,
		Concurrent: func() int { return 4 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(context.Background(), func() { fmt.Println("READY") }); err != nil {
		t.Fatal(err)
	}
}

// TestWorkerKilled kills workers with SIGKILL at any point of their work.
// Afterwards every job is done or unknown: one that is done had its effect once,
// one that is unknown at most once, and one that changes nothing is done.
func TestWorkerKilled(t *testing.T) { killed(t, 8) }

// TestSoakWorkerKilled is the same for 200 kills.
func TestSoakWorkerKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("soak: 200 processes are started and killed")
	}
	killed(t, 200)
}

func killed(t *testing.T, kills int) {
	dir, address := t.TempDir(), storetest.Address(t)
	st := storetest.Open(t, address)
	s := &shop{Stored: queue.NewStored(st, queue.StoredConfig{Most: func() int { return 1e6 }}), maker: newMaker(t, st, filepath.Join(dir, "mine"), note(dir), nil)}
	var all []queue.Job
	more := func(n int) {
		for range n {
			target := []string{"write", "write", "repeat", "look"}[len(all)%4]
			all = append(all, s.add(t, target, func(j *queue.Job) { j.Call.Arguments = json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, len(all))) }))
		}
	}
	for range kills {
		more(12)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestCrashChild$", "-test.count=1")
		cmd.Env = append(os.Environ(), crashDir+"="+dir, crashStore+"="+address)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "READY\n" {
			t.Fatalf("the worker said %q, %v", line, err)
		}
		<-time.After(time.Duration(rand.IntN(60_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
	s.work(t, func(c *queue.WorkerConfig) { c.Process, c.Dead = procid.Self(), procid.Dead })
	states := map[queue.State]int{}
	ends := map[string]queue.Job{}
	for _, j := range all {
		ends[j.ID] = s.until(t, j.ID, final)
	}
	effects := effectsOf(t, dir)
	for _, j := range all {
		got := ends[j.ID]
		states[got.State]++
		n := effects[fmt.Sprintf("%s %s", j.Call.Target, j.Call.Arguments)]
		switch {
		case j.Call.Target == "tool:write" && got.State == queue.Done && n == 1, j.Call.Target == "tool:write" && got.State == queue.Unknown && n <= 1:
		case j.Call.Target != "tool:write" && got.State == queue.Done && n >= 1:
		default:
			t.Errorf("%s with %s had %d effects and is %s: %s", j.Call.Target, j.Call.Arguments, n, got.State, got.Why)
		}
	}
	t.Logf("%d kills, %d jobs: %v", kills, len(all), states)
}

func effectsOf(t testing.TB, dir string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		out[strings.TrimSuffix(line, "\n")]++
	}
	return out
}
