//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestLimits hits each limit, and does the same once without it.
func TestLimits(t *testing.T) {
	t.Parallel()
	const alloc = `awk 'BEGIN{s="0123456789abcdef"; while(length(s)<%d) s=s s; print length(s)}'`
	tests := []struct {
		name   string
		script string
		limits Limits
		free   string // what is said without the limit
		want   func(Outcome) bool
	}{
		{"wall", "sleep 2; echo done", Limits{Wall: 100 * time.Millisecond}, "done\n",
			func(o Outcome) bool { return o.End == TimedOut && o.Limit == "wall" }},
		{"cpu", "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done; echo done", Limits{CPU: time.Second}, "done\n",
			func(o Outcome) bool { return o.End == Signalled && o.Limit == "cpu" }},
		{"file size", "head -c 3000000 /dev/zero >f; wc -c <f", Limits{FileSize: mib}, "3000000\n",
			func(o Outcome) bool { return strings.TrimSpace(o.Stdout.Text()) == fmt.Sprint(mib) }},
		{"open files", "for i in 3 4 5 6 7 8 9; do eval \"exec $i</dev/null\" || exit 9; done; echo done", Limits{OpenFiles: 6}, "done\n",
			func(o Outcome) bool { return o.ExitCode != 0 && !strings.Contains(o.Stdout.Text(), "done") }},
		{"address space", fmt.Sprintf(alloc, 64*mib), Limits{AddressSpace: 48 * mib}, fmt.Sprintln(64 * mib),
			func(o Outcome) bool { return o.End != Exited || o.ExitCode != 0 }},
		{"memory", fmt.Sprintf(alloc, 256*mib), Limits{Memory: 64 * mib}, fmt.Sprintln(256 * mib),
			func(o Outcome) bool { return o.End != Exited || o.ExitCode != 0 }},
		{"output", "head -c 3000000 /dev/zero", Limits{OutputStop: mib, Output: 1}, "",
			func(o Outcome) bool { return o.End == OverOutput && o.Limit == "output" }},
		{"disk", "for i in 1 2 3 4 5 6 7 8; do head -c 400000 /dev/urandom >f$i; done; sleep 1; echo done", Limits{Disk: mib}, "done\n",
			func(o Outcome) bool { return o.End == OverDisk && o.Limit == "disk" && o.Used.Disk > mib }},
		{"disk, many empty files", "i=0; while [ $i -lt 3000 ]; do : >f$i; i=$((i+1)); done; sleep 1; echo done", Limits{Disk: mib}, "done\n",
			func(o Outcome) bool { return o.End == OverDisk }},
	}
	eachProfile(t, func(t *testing.T, p Profile) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				s := shell(inside(t), tt.script)
				s.Limits = tt.limits
				if o := mustRun(t, p, s); !tt.want(o) {
					t.Errorf("limited: %s code %d signal %q limit %q disk %d stdout %.80q stderr %.200q",
						o.End, o.ExitCode, o.Signal, o.Limit, o.Used.Disk, o.Stdout.Text(), o.Stderr.Text())
				}
				free := shell(inside(t), tt.script)
				if o := mustRun(t, p, free); o.End != Exited || o.ExitCode != 0 || (tt.free != "" && o.Stdout.Text() != tt.free) {
					t.Errorf("control: %s code %d %.80q %.200q, want exited 0 %q", o.End, o.ExitCode, o.Stdout.Text(), o.Stderr.Text(), tt.free)
				}
			})
		}
	})
}

// TestProcessLimit forks until it is refused: the shell then gives up.
func TestProcessLimit(t *testing.T) {
	const script = `for i in $(seq 60); do sleep 5 >/dev/null 2>&1 & done; echo all`
	eachProfile(t, func(t *testing.T, p Profile) {
		s := shell(inside(t), script)
		s.Limits.Processes = 20
		o := mustRun(t, p, s)
		for _, m := range o.Isolation.Missing {
			if strings.HasPrefix(m, "processes:") {
				t.Skipf("cannot here: not to be had, and said so: %s", m)
			}
		}
		if o.Stdout.Text() != "" || !strings.Contains(o.Stderr.Text(), "fork") {
			t.Errorf("60 processes with a limit of 20: %q %q, want a refused fork", o.Stdout.Text(), o.Stderr.Text())
		}
		if o := mustRun(t, p, shell(inside(t), script)); o.Stdout.Text() != "all\n" {
			t.Errorf("control: %q %q, want all", o.Stdout.Text(), o.Stderr.Text())
		}
	})
}

// TestTwoRunsApart shows that one run's processes do not count for another.
func TestTwoRunsApart(t *testing.T) {
	s := shell(inside(t), "for i in $(seq 10); do sleep 0.3 & done; wait; echo done")
	s.Limits.Processes = 15
	done := make(chan Outcome, 2)
	for range 2 {
		go func() {
			o, err := runIn(context.Background(), Full, s)
			if err != nil {
				t.Error(err)
			}
			done <- o
		}()
	}
	for range 2 {
		if o := <-done; o.Stdout.Text() != "done\n" || o.Stderr.Bytes != 0 {
			t.Errorf("Run = %s %q %q", o.End, o.Stdout.Text(), o.Stderr.Text())
		}
	}
}

// TestT10Flood lets a tool write far more than is kept: the count is true, memory
// stays flat, and a flood without end is still stopped by the clock.
func TestT10Flood(t *testing.T) {
	size := int64(2) << 30
	if testing.Short() {
		size = 64 << 20
	}
	var before, after runtime.MemStats
	for _, p := range []Profile{Full, None} {
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := shell(inside(t), fmt.Sprintf("echo begin; yes | head -c %d; echo end", size))
		start := time.Now()
		o := mustRun(t, p, s)
		t.Logf("%s: %d bytes in %v", p, o.Stdout.Bytes, time.Since(start))
		runtime.GC()
		runtime.ReadMemStats(&after)
		if want := size + 10; o.End != Exited || o.Stdout.Bytes != want {
			t.Errorf("%s: %s with %d bytes, want exited with %d", p, o.End, o.Stdout.Bytes, want)
		}
		if !bytes.HasPrefix(o.Stdout.Head, []byte("begin\ny\n")) || !bytes.HasSuffix(o.Stdout.Tail, []byte("y\nend\n")) {
			t.Errorf("kept %.10q … %.10q, want the true ends", o.Stdout.Head, o.Stdout.Tail)
		}
		if kept := len(o.Stdout.Head) + len(o.Stdout.Tail); kept != mib {
			t.Errorf("kept %d bytes, want %d", kept, mib)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 16*mib {
			t.Errorf("the heap grew by %d bytes", grown)
		}
	}
	s := shell(inside(t), "yes")
	s.Limits.Wall = 2 * time.Second
	if o := mustRun(t, Full, s); o.End != TimedOut || o.Stdout.Bytes == 0 || o.Unfinished {
		t.Errorf("endless flood: %s after %d bytes", o.End, o.Stdout.Bytes)
	}
}

// TestBlockedWriter shows that a reader who does not read cannot outlast the
// clock.
func TestBlockedWriter(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	defer close(gate)
	s := shell(inside(t), "yes")
	s.Live = writerFunc(func([]byte) { <-gate })
	s.Limits.Wall = 2 * time.Second // so long that it has begun to write
	if o := mustRun(t, Full, s); o.End != TimedOut || !o.Unfinished {
		t.Errorf("blocked writer: %s unfinished=%v, want timed-out and unfinished", o.End, o.Unfinished)
	}
}

// TestFailedWriter shows that a writer's failure is not the tool's.
func TestFailedWriter(t *testing.T) {
	s := shell(inside(t), "echo a; sleep 0.05; echo b")
	s.Live, s.Stdout = brokenWriter{}, new(bytes.Buffer)
	if o := mustRun(t, Full, s); o.Stdout.Text() != "a\nb\n" || s.Stdout.(*bytes.Buffer).String() != "a\nb\n" {
		t.Errorf("output = %q and %q, want all of it", o.Stdout.Text(), s.Stdout)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

// TestCapture compares the ring with the simplest thing that could keep ends.
// The program under test is its own helper, so its imports are kept few: no
// property library here.
func TestCapture(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		keep := rnd.Int64N(40)
		c := newCapture(keep)
		var all []byte
		for range rnd.IntN(8) {
			p := make([]byte, rnd.IntN(60))
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
			all = append(all, p...)
			if n, err := c.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write(%d bytes) = %d, %v", len(p), n, err)
			}
		}
		half := int(keep+1) / 2
		head := all[:min(half, len(all))]
		tail := all[len(head):]
		tail = tail[max(0, len(tail)-half):]
		o := c.output()
		if !bytes.Equal(o.Head, head) || !bytes.Equal(o.Tail, tail) || o.Bytes != int64(len(all)) {
			t.Fatalf("seed %d: output = %q %q %d, want %q %q %d", seed, o.Head, o.Tail, o.Bytes, head, tail, len(all))
		}
		if want := int64(len(all) - len(head) - len(tail)); o.Dropped() != want {
			t.Fatalf("seed %d: Dropped = %d, want %d", seed, o.Dropped(), want)
		}
	}
}
