package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/procid"
	"ken/internal/run/queue"
	"ken/internal/testkit"
	"ken/internal/testkit/queuetest"
	"ken/internal/testkit/storetest"
)

const (
	peerDir   = "KEN_QUEUE_TEST_DIR"
	peerStore = "KEN_QUEUE_TEST_STORE"
	peerSlow  = "KEN_QUEUE_TEST_SLOW"
)

// note has an effect that can be counted: one line more in a file, which is
// written as a whole.
func note(dir string) queuetest.Tool {
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

// TestWorkerKilled kills workers with SIGKILL at any point of their work.
// Afterwards every job is done or unknown: one that is done had its effect once,
// one that is unknown at most once, and one that changes nothing is done.
func TestWorkerKilled(t *testing.T) {
	testkit.CI(t, "starts and kills processes")
	killed(t, 8)
}

// TestSoakWorkerKilled is the same for 200 kills.
func TestSoakWorkerKilled(t *testing.T) {
	testkit.Nightly(t, "200 processes are started and killed")
	killed(t, 200)
}

func killed(t *testing.T, kills int) {
	dir, address := t.TempDir(), storetest.Address(t)
	s := idle(t, address, filepath.Join(dir, "mine"), note(dir))
	var all []queue.Job
	more := func(n int) {
		for range n {
			target := []string{"write", "write", "repeat", "look"}[len(all)%4]
			all = append(all, s.add(t, target, func(j *queue.Job) { j.Call.Arguments = json.RawMessage(fmt.Sprintf(`{"text":"%d"}`, len(all))) }))
		}
	}
	for range kills {
		more(12)
		for _, cmd := range peers(t, 1, dir, address, "") {
			<-time.After(time.Duration(rand.IntN(60_000)) * time.Microsecond)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
		}
	}
	s.work(t, func(c *queue.WorkerConfig) { c.Process, c.Dead = procid.Self(), procid.Dead })
	for _, j := range all {
		s.until(t, j.ID, final)
	}
	t.Logf("%d kills, %d jobs: %v", kills, len(all), verdict(t, s, dir, all))
}

// verdict counts the states of jobs, and fails for each that had more effects than it
// may have had: one that is done had its effect once, or more often where that does no
// harm, and one that is unknown at most once.
func verdict(t testing.TB, q queue.Queue, dir string, all []queue.Job) map[queue.State]int {
	t.Helper()
	effects, states := effectsOf(t, dir), map[queue.State]int{}
	for _, j := range all {
		got, err := q.Get(context.Background(), j.ID)
		if err != nil {
			t.Fatal(err)
		}
		states[got.State]++
		n := effects[fmt.Sprintf("%s %s", j.Call.Target, j.Call.Arguments)]
		switch write := j.Call.Target == "tool:write"; {
		case write && got.State == queue.Done && n == 1, write && got.State == queue.Unknown && n <= 1, !write && got.State == queue.Done && n >= 1:
		default:
			t.Errorf("%s with %s had %d effects and is %s: %s", j.Call.Target, j.Call.Arguments, n, got.State, got.Why)
		}
	}
	return states
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
