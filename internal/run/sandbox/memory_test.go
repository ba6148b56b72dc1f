//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hogs, in the environment, makes a test binary use memory in a certain way:
// KIND:MEGABYTES, and then wait to be ended for as long as hogHold says.
const (
	hogs    = "KEN_TEST_HOG"
	hogHold = "KEN_TEST_HOLD"
)

func hog(order string) int {
	kind, text, _ := strings.Cut(order, ":")
	var mb int
	fmt.Sscan(text, &mb)
	hold, _ := time.ParseDuration(os.Getenv(hogHold))
	touch := func(b []byte) {
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	fail := func(err error) int { fmt.Fprintln(os.Stderr, err); return 1 }
	switch kind {
	case "shared", "private":
		flags := unix.MAP_ANON | unix.MAP_SHARED
		if kind == "private" {
			flags = unix.MAP_ANON | unix.MAP_PRIVATE
		}
		b, err := unix.Mmap(-1, 0, mb<<20, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			return fail(err)
		}
		touch(b)
	case "memfd":
		fd, err := unix.MemfdCreate("hog", 0)
		if err != nil {
			return fail(err)
		}
		block := make([]byte, 1<<20)
		for range mb {
			if _, err := unix.Write(fd, block); err != nil {
				return fail(err)
			}
		}
	case "sysv":
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, mb<<20, unix.IPC_CREAT|0o600)
		if err != nil {
			return fail(err)
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return fail(err)
		}
		touch(b)
		if err := unix.SysvShmDetach(b); err != nil {
			return fail(err)
		}
	case "six": // each alone within the limit
		var all []*exec.Cmd
		for range 6 {
			c := exec.Command("/proc/self/exe")
			c.Env = append(os.Environ(), fmt.Sprintf("%s=private:%d", hogs, mb/6))
			c.Stderr = os.Stderr
			if err := c.Start(); err != nil {
				return fail(err)
			}
			all = append(all, c)
		}
		for _, c := range all {
			if err := c.Wait(); err != nil {
				return fail(err)
			}
		}
	}
	time.Sleep(hold)
	fmt.Println("done")
	return 0
}

// TestMemoryOfTheWholeCall: a limit of memory holds for all that a call uses,
// however it uses it: by several processes, by memory that is shared, by files
// without a name. Without the limit each is possible, and within it too.
func TestMemoryOfTheWholeCall(t *testing.T) {
	self := openCopy(t)
	eachProfile(t, func(t *testing.T, p Profile) {
		for _, kind := range []string{"shared", "memfd", "sysv", "six"} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				run := func(mb int, limit int64, hold time.Duration) Outcome {
					s := shell(inside(t), "")
					s.Path, s.Args = self, []string{self}
					s.Env = []string{fmt.Sprintf("%s=%s:%d", hogs, kind, mb), hogHold + "=" + hold.String(), "GOMAXPROCS=1"}
					s.Limits.Memory, s.Limits.Wall = limit, 2*time.Minute
					return mustRun(t, p, s)
				}
				if o := run(420, -1, 0); o.ExitCode != 0 || o.Stdout.Text() != "done\n" {
					if kind == "sysv" && strings.Contains(o.Stderr.Text(), "not permitted") {
						t.Skip("cannot here: this profile gives no memory shared by a key")
					}
					t.Fatalf("control, without a limit: %s %d %s", o.End, o.ExitCode, o.Stderr.Text())
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

// openCopy returns a copy of the test binary that every user can run. The one
// that go test builds is in a directory that only its owner may enter.
func openCopy(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-copy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "sandbox.test")
	if err := writeProgram(func() error { return os.WriteFile(copied, data, 0o755) }); err != nil {
		t.Fatal(err)
	}
	return copied
}
