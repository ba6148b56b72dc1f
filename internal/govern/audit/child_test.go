package audit

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestMain runs a child of a test instead of the tests where one is asked for.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_TEST_DIR"); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(m.Run())
}

func childConfig(t testing.TB, dir string) Config {
	return Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: testKey(t), SegmentBytes: 64 << 10, CheckpointEvery: 50}
}

// child is a process of its own with a log in dir. It prints the number of each
// record when, and only when, it was acknowledged.
func child(dir string) int {
	l, err := Open(childConfig(&testing.B{}, dir))
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

func noneLost(t *testing.T, cfg Config, acks map[ID]string) {
	t.Helper()
	if lost, _ := missing(t, cfg.Dir, acks); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}

// children runs five processes on one directory, and checks that all they were told
// is recorded is there. Each is killed after some acknowledgements, or writes count
// records to its end.
func children(t *testing.T, rounds int, count string) []ChainReport {
	dir := t.TempDir()
	all := map[ID]string{}
	var mu sync.Mutex
	for range rounds {
		var wg sync.WaitGroup
		for range 5 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "AUDIT_TEST_DIR="+dir, "AUDIT_TEST_COUNT="+count)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			killAfter, least := -1, 200
			if count == "" {
				killAfter = 1 + rand.IntN(120)
				least = killAfter
			}
			wg.Go(func() {
				acks, rest := acked(cmd, bufio.NewScanner(out), killAfter)
				err := cmd.Wait()
				mu.Lock()
				defer mu.Unlock()
				if len(rest) > 0 || len(acks) < least || err != nil && killAfter < 0 {
					t.Errorf("child acknowledged %d of %d, said %q and ended with %v", len(acks), least, rest, err)
				}
				maps.Copy(all, acks)
			})
		}
		wg.Wait()
	}
	cfg, total := childConfig(t, dir), len(all)
	lost, records := missing(t, cfg.Dir, all)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged records are lost: %v", len(lost), total, lost[:min(5, len(lost))])
	}
	rep := testVerify(t, cfg)
	if len(rep.Chains) != rounds*5 {
		t.Errorf("%d chains, want %d", len(rep.Chains), rounds*5)
	}
	t.Logf("%d processes, %d records, %d acknowledged", rounds*5, records, total)
	return rep.Chains
}

// TestKillNine kills processes that write, five at a time on one directory:
// nothing that was acknowledged is lost, and nothing looks tampered with.
func TestKillNine(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 2
	}
	for _, c := range children(t, rounds, "") {
		if c.State != OpenDied {
			t.Errorf("chain of a killed process: %v, want died", c)
		}
	}
}

// TestFiveProcesses: five at once, to the end; all records are there and every
// chain is closed.
func TestFiveProcesses(t *testing.T) {
	for _, c := range children(t, 1, "25") {
		if c.State != Whole || c.Records != 201 {
			t.Errorf("%v, want ok with 201 records", c)
		}
	}
}
