package audit

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestMain runs a child of a test instead of the tests where one is asked for.
func TestMain(m *testing.M) {
	if what := os.Getenv("AUDIT_TEST_CHILD"); what != "" {
		os.Exit(child(what))
	}
	os.Exit(m.Run())
}

// child is a process of its own with a log in AUDIT_TEST_DIR. It prints the
// number of each record when, and only when, it was acknowledged.
func child(what string) int {
	signal.Ignore(syscall.Signal(25)) // SIGXFSZ: then a write past the limit is an error
	t := &testing.B{}
	dir := os.Getenv("AUDIT_TEST_DIR")
	cfg := Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: testKey(t), SegmentBytes: 64 << 10, CheckpointEvery: 50}
	if what == "full" {
		cfg.SegmentBytes = 1 << 30
		if err := limitFileSize(32 << 10); err != nil {
			fmt.Println("skip:", err)
			return 0
		}
	}
	l, err := Open(cfg)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	fmt.Println("chain", l.Chain())
	count := 1 << 30
	if n, err := strconv.Atoi(os.Getenv("AUDIT_TEST_COUNT")); err == nil {
		count = n
	}
	var wg sync.WaitGroup
	var out sync.Mutex
	for w := range 8 {
		wg.Go(func() {
			for i := range count {
				write := l.Append
				if i%2 == 0 {
					write = l.Announce
				}
				id, err := write(context.Background(), Record{Event: Executed, EffectID: fmt.Sprintf("%d-%d", w, i), CommandLine: strings.Repeat("x", 100)})
				out.Lock()
				if err != nil {
					fmt.Println("error:", err)
					out.Unlock()
					return
				}
				fmt.Println("ack", id, fmt.Sprintf("%d-%d", w, i))
				out.Unlock()
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		fmt.Println("close:", err)
		return 3
	}
	return 0
}

func start(t *testing.T, what, dir string, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_TEST_CHILD="+what, "AUDIT_TEST_DIR="+dir)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// acked reads what a child was told is recorded, and kills it after so many.
func acked(cmd *exec.Cmd, out *bufio.Scanner, killAfter int) (map[ID]string, []string) {
	acks := map[ID]string{}
	var rest []string
	for out.Scan() {
		if f := strings.Fields(out.Text()); f[0] == "ack" && len(f) == 3 {
			acks[ID(f[1])] = f[2]
		} else if f[0] != "chain" {
			rest = append(rest, out.Text())
		}
		if len(acks) == killAfter {
			_ = cmd.Process.Kill() // and go on reading what was said before
		}
	}
	return acks, rest
}

// missing returns the acknowledged records that the trail does not have.
func missing(t *testing.T, dir string, acks map[ID]string) (lost []ID, records int) {
	t.Helper()
	for e, err := range Query(dir, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		records++
		if effect, ok := acks[e.ID]; ok && effect == e.Record.EffectID {
			delete(acks, e.ID)
		}
	}
	for id := range acks {
		lost = append(lost, id)
	}
	return lost, records
}

// TestKillNine kills processes that write, five at a time on one directory:
// nothing that was acknowledged is lost, and nothing looks tampered with.
func TestKillNine(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 2
	}
	const processes = 5
	dir := t.TempDir()
	cfg := Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: testKey(t)}
	all := map[ID]string{}
	var mu sync.Mutex
	for range rounds {
		var wg sync.WaitGroup
		for range processes {
			cmd, out := start(t, "write", dir)
			after := 1 + rand.IntN(120)
			wg.Go(func() {
				acks, rest := acked(cmd, out, after)
				_ = cmd.Wait()
				mu.Lock()
				defer mu.Unlock()
				if len(rest) > 0 || len(acks) < after {
					t.Errorf("child acknowledged %d of %d and said %q", len(acks), after, rest)
				}
				for id, effect := range acks {
					all[id] = effect
				}
			})
		}
		wg.Wait()
	}
	total := len(all)
	lost, records := missing(t, cfg.Dir, all)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged records are lost: %v", len(lost), total, lost[:min(5, len(lost))])
	}
	rep := testVerify(t, cfg)
	unfinished, unsigned := 0, int64(0)
	for _, c := range rep.Chains {
		if c.State != OpenDied {
			t.Errorf("chain of a killed process: %v, want died", c)
		}
		if c.Unfinished > 0 {
			unfinished++
		}
		unsigned += c.Records - c.Signed
	}
	if len(rep.Chains) != rounds*processes {
		t.Errorf("%d chains, want %d", len(rep.Chains), rounds*processes)
	}
	t.Logf("%d kills, %d records, %d acknowledged, %d lost, %d unfinished lines, %d whole but not acknowledged", rounds*processes, records, total, len(lost), unfinished, unsigned)
}

// TestFiveProcesses: five at once, to the end; all records are there and every
// chain is closed.
func TestFiveProcesses(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: testKey(t)}
	all := map[ID]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 5 {
		cmd, out := start(t, "write", dir, "AUDIT_TEST_COUNT=25")
		wg.Go(func() {
			acks, rest := acked(cmd, out, -1)
			err := cmd.Wait()
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(rest) > 0 || len(acks) != 200 {
				t.Errorf("child: %v, %d acknowledged, want 200; said %q", err, len(acks), rest)
			}
			for id, effect := range acks {
				all[id] = effect
			}
		})
	}
	wg.Wait()
	if lost, records := missing(t, cfg.Dir, all); len(lost) != 0 || records != 5*201 {
		t.Errorf("%d records, %d lost; want %d and none", records, len(lost), 5*201)
	}
	rep := testVerify(t, cfg)
	for _, c := range rep.Chains {
		if c.State != Whole {
			t.Errorf("%v, want ok", c)
		}
	}
	if len(rep.Chains) != 5 {
		t.Errorf("%d chains, want 5", len(rep.Chains))
	}
}

// TestFullDiskForReal lets a child write until the system refuses: from then
// on every append fails and says why, and what was acknowledged is there.
func TestFullDiskForReal(t *testing.T) {
	dir := t.TempDir()
	cmd, out := start(t, "full", dir)
	acks, rest := acked(cmd, out, -1)
	_ = cmd.Wait()
	if len(rest) == 1 && strings.HasPrefix(rest[0], "skip:") {
		t.Skip("cannot here: " + strings.TrimPrefix(rest[0], "skip:"))
	}
	errors := 0
	for _, line := range rest {
		if strings.HasPrefix(line, "error:") && strings.Contains(line, ErrPoisoned.Error()) && strings.Contains(line, "file too large") {
			errors++
		}
	}
	if errors != 8 || len(acks) == 0 {
		t.Errorf("%d of 8 writers got a poisoned log, %d acknowledged; said %q", errors, len(acks), rest)
	}
	cfg := Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: testKey(t)}
	if lost, _ := missing(t, cfg.Dir, acks); len(lost) != 0 {
		t.Errorf("%d acknowledged records are lost", len(lost))
	}
	if rep := only(t, cfg); rep.State != OpenDied {
		t.Errorf("%v, want died: a poisoned chain is not closed", rep)
	}
}
