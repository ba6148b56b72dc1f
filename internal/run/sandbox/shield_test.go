//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestShield: a process of the same user cannot look into a shielded one, and what the
// shielded one starts is confined as ever.
func TestShield(t *testing.T) {
	if os.Getenv(asShielded) == "" {
		t.Skip("cannot here: TestAsShielded runs it")
	}
	for _, name := range []string{"environ", "mem", "maps", "auxv", "fd", "cwd", "exe", "root"} {
		out, err := exec.Command("cat", fmt.Sprintf("/proc/%d/%s", os.Getpid(), name)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("cat /proc/PID/%s = %q, %v, want it denied", name, out, err)
		}
	}
	if _, err := os.ReadFile("/proc/self/environ"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read of our own environment: %v, want that of a shielded process", err)
	}
	if p := Probe(t.Context()).Isolation; p.Profile != Full {
		t.Errorf("the profile is %s, want full; missing %v", p.Profile, p.Missing)
	}
	o := mustRun(t, Full, shell(inside(t), "echo x"))
	if o.Stdout.Text() != "x\n" || o.Isolation.Profile != Full {
		t.Errorf("Run = %q under %s", o.Stdout.Text(), o.Isolation.Profile)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil || core.Cur != 0 {
		t.Errorf("core files may have %d bytes, %v; want none", core.Cur, err)
	}
}
