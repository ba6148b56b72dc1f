//go:build linux

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// hogBinary, in the environment, is the path of testdata/hog, built. It is for
// tests that run again as a user who has no Go.
const hogBinary = "KEN_TEST_HOG"

// TestMemoryOfTheWholeCall: a memory limit applies to everything a call uses:
// several processes, shared memory, unnamed files. Each is possible without the
// limit, and within it.
func TestMemoryOfTheWholeCall(t *testing.T) {
	testkit.CI(t, "builds a program that takes 420 MiB")
	hog := buildHog(t)
	eachProfile(t, func(t *testing.T, p Profile) {
		for _, kind := range []string{"shared", "memfd", "sysv", "six"} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				if kind == "sysv" {
					t.Cleanup(removeSegments)
				}
				run := func(mb int, limit int64, wait time.Duration) Outcome {
					s := shell(inside(t), "")
					s.Path, s.Args = hog, []string{hog, kind, strconv.Itoa(mb), wait.String(), strconv.Itoa(os.Getpid())}
					s.Env = []string{"GOMAXPROCS=1"}
					s.Limits.Memory, s.Limits.Wall = limit, testkit.Patience
					return mustRun(t, p, s)
				}
				if o := run(420, -1, 0); o.ExitCode != 0 || o.Stdout.Text() != "done\n" {
					if kind == "sysv" && strings.Contains(o.Stderr.Text(), "not permitted") {
						t.Skip("cannot here: this profile gives no memory shared by a key")
					}
					t.Fatalf("control, without a limit: %s %d %s", o.End, o.ExitCode, o.Stderr.Text())
				}
				if o := run(1, 240*mib, 0); kind == "memfd" && strings.Contains(o.Stderr.Text(), "not implemented") {
					return // without a cgroup there are no unnamed files, so that none can hold memory
				}
				if o := run(48, 240*mib, 200*time.Millisecond); o.ExitCode != 0 || o.Stdout.Text() != "done\n" {
					t.Errorf("control, within the limit: %s %d limit %q %s", o.End, o.ExitCode, o.Limit, o.Stderr.Text())
				}
				o := run(420, 240*mib, time.Minute)
				if o.Stdout.Text() == "done\n" || o.Limit != "memory" {
					t.Errorf("420 MiB with a limit of 240: %s %d limit %q %q %s (missing %q)", o.End, o.ExitCode, o.Limit, o.Stdout.Text(), o.Stderr.Text(), o.Isolation.Missing)
				}
			})
		}
	})
}

// TestMemoryOfEndedProcesses: shared memory that processes leave behind counts,
// however short their lives were, though the tool shares it with the machine.
func TestMemoryOfEndedProcesses(t *testing.T) {
	testkit.CI(t, "builds a program that takes 420 MiB")
	t.Cleanup(removeSegments)
	hog := buildHog(t)
	s := shell(inside(t), "")
	s.Args = []string{"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do " + hog + " sysv 48 0 $OWNER >/dev/null; done; echo done; sleep 60"}
	s.Env = []string{"OWNER=" + strconv.Itoa(os.Getpid())}
	s.Open, s.Limits = Open{Files: true, Network: true}, Limits{Memory: 240 * mib, Wall: testkit.Patience}
	o := mustRun(t, Full, s)
	if o.Limit != "memory" {
		t.Errorf("432 MiB in nine processes, with a limit of 240: %s %d limit %q %q %s (missing %q)", o.End, o.ExitCode, o.Limit, o.Stdout.Text(), o.Stderr.Text(), o.Isolation.Missing)
	}
}

// removeSegments removes the shared memory that ended hogs have left on the
// machine: it outlives them where they were not in a namespace. Other processes
// may be running the same tests: a segment is some bytes longer than asked for,
// and their number is the process whose test started the hog.
func removeSegments() {
	table, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) < 7 || f[0] != "0" || f[6] != "0" { // private, attached nowhere
			continue
		}
		id, err1 := strconv.Atoi(f[1])
		size, err2 := strconv.Atoi(f[3])
		for _, asked := range []int{1 << 20, 48 << 20, 420 << 20} {
			owner := size - asked
			ended := owner > 0 && owner < 4<<20 && unix.Kill(owner, 0) == unix.ESRCH
			if err1 == nil && err2 == nil && (owner == os.Getpid() || ended) {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
		}
	}
}

// buildHog builds testdata/hog where every user can run it and returns its path.
func buildHog(t *testing.T) string {
	t.Helper()
	if built := os.Getenv(hogBinary); built != "" {
		return built
	}
	dir, err := os.MkdirTemp("", "sandbox-hog-") // t.TempDir lies below a closed directory
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "hog")
	build := exec.Command("go", "build", "-o", program, "./testdata/hog")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	must(t, os.Chmod(program, 0o755))
	return program
}
