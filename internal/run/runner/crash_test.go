package runner

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

const (
	crashDir   = "KEN_RUNNER_TEST_DIR"
	crashStore = "KEN_RUNNER_TEST_STORE"
	crashPoint = "KEN_RUNNER_TEST_POINT"
)

// halting stops for ever once a record of some kind was written.
type halting struct {
	Log
	at    audit.Event
	early bool // before it is written
}

func (h halting) Append(ctx context.Context, records ...audit.Record) (audit.ID, error) {
	return h.write(ctx, h.Log.Append, records)
}

func (h halting) Announce(ctx context.Context, records ...audit.Record) (audit.ID, error) {
	return h.write(ctx, h.Log.Announce, records)
}

func (h halting) write(ctx context.Context, write func(context.Context, ...audit.Record) (audit.ID, error), records []audit.Record) (audit.ID, error) {
	hit := records[0].Event == h.at
	if hit && h.early {
		halt()
	}
	id, err := write(ctx, records...)
	if hit {
		halt()
	}
	return id, err
}

func halt() {
	fmt.Println("HALTED")
	for range time.Tick(time.Hour) {
	}
}

// crashRig makes a Runner over what is kept in a folder and a store, with an effect
// that can be counted.
func crashRig(t *testing.T, dir, address string, wrap func(Log) Log) *rig {
	t.Helper()
	key, err := audit.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "heads"), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return keyed(t, storetest.Open(t, address), "k", touch(dir), func(c *Config) {
		c.Log, c.Limits = wrap(log), Limits{Lease: 150 * time.Millisecond}.Always
	})
}

// touch has an effect that can be counted: one line more in a file.
func touch(dir string) tool {
	return tool{invoke: func(context.Context, capability.Call) (capability.Result, error) {
		if os.Getenv(crashPoint) == "before" {
			halt()
		}
		f, err := os.OpenFile(filepath.Join(dir, "effect"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return capability.Result{}, err
		}
		fmt.Fprintln(f, "done")
		f.Close()
		if os.Getenv(crashPoint) == "effect" {
			halt()
		}
		return capability.Result{Parts: []capability.Part{{Text: "touched"}}}, nil
	}}
}

// TestCrashChild is the process that dies; it is run by TestCrash.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("cannot here: it is the process that TestCrash starts and kills")
	}
	r := crashRig(t, dir, os.Getenv(crashStore), func(log Log) Log {
		switch os.Getenv(crashPoint) {
		case "record":
			return halting{log, audit.Started, false}
		case "after":
			return halting{log, audit.Executed, true}
		}
		return log
	})
	_, _ = r.Invoke(t.Context(), callOf(os.Getenv("KEN_RUNNER_TEST_TOOL"), `{"text":"a"}`))
	t.Fatal("the child was to be killed")
}

// TestCrash kills a process with SIGKILL at three points of a call. After it,
// the call is unknown and its effect is not repeated, unless that does no harm;
// and a call whose result was kept gives it.
func TestCrash(t *testing.T) {
	tests := []struct {
		point, tool string
		effects     int  // by the child
		again       bool // it runs again by itself
	}{
		{"before", "write", 0, false},
		{"effect", "write", 1, false},
		{"before", "repeat", 0, true},
		{"effect", "repeat", 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.point+" "+tt.tool, func(t *testing.T) {
			dir, address := t.TempDir(), storetest.Address(t)
			kill(t, dir, address, tt.point, tt.tool)
			if got := lines(dir); got != tt.effects {
				t.Fatalf("the child had %d effects, want %d", got, tt.effects)
			}
			r := crashRig(t, dir, address, func(log Log) Log { return log })
			res, err := settled(t, r, callOf(tt.tool, `{"text":"a"}`))
			want := tt.effects + 1
			if tt.again {
				if err != nil || res.Parts[0].Text != "touched" {
					t.Errorf("Invoke() after the crash = %+v, %v, want that it runs again", res, err)
				}
			} else {
				call := again(t, callOf(tt.tool, `{"text":"a"}`), err)
				wrong := call
				wrong.Answers = map[string]json.RawMessage{AnswerAgain: json.RawMessage(`"another"`)}
				refused(t, r, wrong, capability.InputNeeded)
				if got := lines(dir); got != tt.effects {
					t.Errorf("%d effects after asking, want %d", got, tt.effects)
				}
				for range 2 { // its result is kept
					gives(t, r, call, "touched")
				}
				if n := records(t, dir, audit.Unknown); n != 2 {
					t.Errorf("%d records say that nobody knows, want one for each question", n)
				}
			}
			if got := lines(dir); got != want {
				t.Errorf("%d effects in the end, want %d", got, want)
			}
			if open := unended(t, dir); open != 1 {
				t.Errorf("%d calls in the trail began and never ended, want the child's", open)
			}
		})
	}
}

// TestCrashAfter kills around the closing record, and right after the one
// before: nothing runs twice.
func TestCrashAfter(t *testing.T) {
	for _, point := range []string{"after", "record"} {
		t.Run(point, func(t *testing.T) { crashAfter(t, point) })
	}
}

func crashAfter(t *testing.T, point string) {
	dir, address := t.TempDir(), storetest.Address(t)
	kill(t, dir, address, point, "write")
	r := crashRig(t, dir, address, func(log Log) Log { return log })
	res, err := settled(t, r, callOf("write", `{"text":"a"}`))
	// After: the child died while its result was being kept, so it is, or the
	// call is unknown. Record: it died while it claimed the effect, so that is
	// unknown, or nothing began and the call runs now.
	want := 1
	switch {
	case err != nil:
		wantKind(t, err, capability.InputNeeded)
		if point == "record" {
			want = 0
		}
	case res.Parts[0].Text != "touched" || (res.Meta[MetaRepeated] == "true") != (point == "after"):
		t.Errorf("Invoke() = %+v, want the first result, or the only one", res)
	}
	if got := lines(dir); got != want {
		t.Errorf("%d effects, want %d", got, want)
	}
}

func kill(t *testing.T, dir, address, point, tool string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	child.Env = append(os.Environ(), crashDir+"="+dir, crashStore+"="+address, crashPoint+"="+point, "KEN_RUNNER_TEST_TOOL="+tool)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	halted := false
	var said []string
	for !halted && scan.Scan() {
		said = append(said, scan.Text())
		halted = strings.HasSuffix(scan.Text(), "HALTED")
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if !halted {
		t.Fatalf("the child did not come to %s:\n%s", point, strings.Join(said, "\n"))
	}
}

// settled makes a call again until the dead process no longer counts as alive.
func settled(t *testing.T, r *rig, call capability.Call) (capability.Result, error) {
	t.Helper()
	var res capability.Result
	var err error
	testkit.Wait(t, "the dead process does not count as alive", func() bool {
		res, err = r.Invoke(t.Context(), call)
		return !errors.Is(err, ErrStillRunning)
	})
	return res, err
}

func lines(dir string) int {
	raw, _ := os.ReadFile(filepath.Join(dir, "effect"))
	return strings.Count(string(raw), "\n")
}

// unended counts the calls that the trail began in a chain and did not end
// there.
func unended(t *testing.T, dir string) int {
	t.Helper()
	open := map[string]int{}
	for e, err := range audit.Query(filepath.Join(dir, "audit"), audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		chain, _, _ := strings.Cut(string(e.ID), ":")
		switch e.Record.Event {
		case audit.Started:
			open[chain+e.Record.EffectID]++
		case audit.Executed, audit.Failed, audit.Unknown:
			open[chain+e.Record.EffectID]--
		}
	}
	n := 0
	for _, k := range open {
		if k > 0 {
			n++
		}
	}
	return n
}

// records counts those of an event in the trail.
func records(t *testing.T, dir string, event audit.Event) (n int) {
	t.Helper()
	for e, err := range audit.Query(filepath.Join(dir, "audit"), audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Record.Event == event && e.Record.Status == audit.Lost {
			n++
		}
	}
	return n
}
