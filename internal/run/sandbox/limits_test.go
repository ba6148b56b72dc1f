//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ken/internal/testkit"
)

// TestLimits hits each limit, and does the same once without it.
func TestLimits(t *testing.T) {
	testkit.CI(t, "uses up processor time, memory and disk")
	t.Parallel()
	const alloc = `awk 'BEGIN{s="0123456789abcdef"; while(length(s)<%d) s=s s; print length(s)}'`
	tests := []struct {
		name, script string
		limits       Limits
		free         string // what is said without the limit
		want         func(Outcome) bool
	}{
		{"wall", "sleep 1000", Limits{Wall: 100 * time.Millisecond}, "",
			func(o Outcome) bool { return o.End == TimedOut && o.Limit == "wall" }},
		{"cpu", "while :; do :; done", Limits{CPU: time.Second}, "",
			func(o Outcome) bool { return o.End == Signalled && o.Limit == "cpu" }},
		{"file size", "head -c 3000000 /dev/zero >f; wc -c <f", Limits{FileSize: mib}, "3000000\n",
			func(o Outcome) bool { return strings.TrimSpace(o.Stdout.Text()) == fmt.Sprint(mib) }},
		{"open files", "for i in 3 4 5 6 7 8 9; do eval \"exec $i</dev/null\" || exit 9; done; echo done", Limits{OpenFiles: 6}, "done\n",
			func(o Outcome) bool { return o.ExitCode != 0 && !strings.Contains(o.Stdout.Text(), "done") }},
		{"address space", fmt.Sprintf(alloc, 64*mib), Limits{AddressSpace: 48 * mib}, fmt.Sprintln(64 * mib),
			func(o Outcome) bool { return o.End != Exited || o.ExitCode != 0 }},
		{"memory", fmt.Sprintf(alloc, 256*mib), Limits{Memory: 64 * mib}, fmt.Sprintln(256 * mib),
			func(o Outcome) bool { return o.End != Exited || o.ExitCode != 0 }},
		{"output", "head -c 3000000 /dev/zero", Limits{OutputStop: mib, Output: 1}, string(make([]byte, 3000000)),
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
				if tt.free == "" {
					return // it has no end
				}
				free := shell(inside(t), tt.script)
				free.Limits.Output = 4 * mib
				if o := mustRun(t, p, free); o.End != Exited || o.ExitCode != 0 || o.Stdout.Text() != tt.free {
					t.Errorf("control: %s code %d %.80q %.200q, want exited 0 %q", o.End, o.ExitCode, o.Stdout.Text(), o.Stderr.Text(), tt.free)
				}
			})
		}
	})
}

// TestProcessLimit forks until it is refused: the shell then gives up.
func TestProcessLimit(t *testing.T) {
	testkit.CI(t, "starts hundreds of processes")
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
		says(t, mustRun(t, p, shell(inside(t), script)), "all\n")
	})
}

// TestT10Flood lets a tool write far more than is kept, and the count is true. A
// flood without end is stopped, even if its reader does not read.
func TestT10Flood(t *testing.T) {
	testkit.CI(t, "writes megabytes")
	const size = 16 * mib
	for _, p := range []Profile{Full, None} {
		o := mustRun(t, p, shell(inside(t), fmt.Sprintf("echo begin; yes | head -c %d; echo end", size)))
		if o.End != Exited || o.Stdout.Bytes != size+10 {
			t.Errorf("%s: %s with %d bytes, want exited with %d", p, o.End, o.Stdout.Bytes, size+10)
		}
		if !bytes.HasPrefix(o.Stdout.Head, []byte("begin\ny\n")) || !bytes.HasSuffix(o.Stdout.Tail, []byte("y\nend\n")) {
			t.Errorf("kept %.10q … %.10q, want the true ends", o.Stdout.Head, o.Stdout.Tail)
		}
		if kept := len(o.Stdout.Head) + len(o.Stdout.Tail); kept != mib {
			t.Errorf("kept %d bytes, want %d", kept, mib)
		}
	}
	for _, blocked := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		gate := make(chan struct{})
		s := shell(inside(t), "yes")
		s.Live = writerFunc(func([]byte) {
			if cancel(); blocked {
				<-gate
			}
		})
		if o, err := runIn(ctx, Full, s); err != nil || o.End != Cancelled || o.Unfinished != blocked {
			t.Errorf("endless flood, blocked %v: %s, unfinished %v, %v", blocked, o.End, o.Unfinished, err)
		}
		close(gate)
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
	rnd := rand.New(rand.NewPCG(1, 2))
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
			t.Fatalf("output = %q %q %d, want %q %q %d", o.Head, o.Tail, o.Bytes, head, tail, len(all))
		}
		if want := int64(len(all) - len(head) - len(tail)); o.Dropped() != want {
			t.Fatalf("Dropped = %d, want %d", o.Dropped(), want)
		}
	}
}
