//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// asStarved has the test binary probe with too few files.
const asStarved = "KEN_TEST_STARVED"

// TestProbeStarved runs TestStarved in a process of its own, which has not probed
// yet.
func TestProbeStarved(t *testing.T) {
	testkit.CI(t, "runs the tests again")
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), selfExe, "-test.run=^TestStarved$", "-test.v")
	cmd.Env = append(os.Environ(), asStarved+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestStarved: a program does not run unconfined because the process had no files
// left to find out what holds, not even with best-effort. Once there are some it
// runs, and as confined as ever.
func TestStarved(t *testing.T) {
	if os.Getenv(asStarved) == "" {
		t.Skip("cannot here: TestProbeStarved runs it")
	}
	work := inside(t)
	// The first pipe of a process makes the runtime open its poller, and the runtime
	// ends the process if there are no files for it. Ken has opened it long before.
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	var usual unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &usual))
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for more := range uint64(24) {
		few := usual
		few.Cur = uint64(len(open)) + more
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
		p, err := Start(t.Context(), shell(work, "echo x"))
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &usual))
		if err == nil { // enough files by now
			if o, err := p.Wait(); err != nil || o.Isolation.Profile == None {
				t.Fatalf("Start with %d files runs under %s, %v, missing %v", few.Cur, o.Isolation.Profile, err, o.Isolation.Missing)
			}
			break
		}
		if _, ok := errors.AsType[*Refusal](err); !ok {
			t.Fatalf("Start with %d files = %v, want a refusal", few.Cur, err)
		}
	}
	o := mustRun(t, Probe(t.Context()).Isolation.Profile, shell(work, "echo x"))
	if o.Stdout.Text() != "x\n" || o.Isolation.Profile == None {
		t.Errorf("Run with files = %q under %s", o.Stdout.Text(), o.Isolation.Profile)
	}
}

// TestScarce: what is missing for good is no reason to try again.
func TestScarce(t *testing.T) {
	for err, want := range map[error]bool{
		unix.EMFILE: true, unix.EAGAIN: true, unix.ENOMEM: true, unix.ENFILE: true, errScarce: true,
		unix.EPERM: false, unix.ENOSYS: false, unix.ENOSPC: false, unix.EINVAL: false,
	} {
		if got := scarce(fmt.Errorf("clone: %w", err)); got != want {
			t.Errorf("scarce(%v) = %v, want %v", err, got, want)
		}
	}
}
