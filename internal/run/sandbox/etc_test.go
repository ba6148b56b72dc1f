//go:build linux

package sandbox

import (
	"os"
	"strings"
	"testing"
)

// TestOwnEtc: a tool sees its own user but not the machine's users, and the
// files in /etc that programs need.
func TestOwnEtc(t *testing.T) {
	real, err := os.ReadFile("/etc/passwd")
	must(t, err)
	o := mustRun(t, Full, shell(inside(t), "cat /etc/passwd; echo ==; id -un; whoami; cat /etc/hosts /etc/nsswitch.conf; cat /etc/shadow /etc/fstab /etc/hostname"))
	passwd, rest, _ := strings.Cut(o.Stdout.Text(), "==\n")
	if !strings.Contains(passwd, "ken:x:") || strings.Contains(passwd, "daemon:") || passwd == string(real) {
		t.Errorf("/etc/passwd is %q", passwd)
	}
	if !strings.HasPrefix(rest, "ken\nken\n127.0.0.1 localhost\n") || !strings.Contains(rest, "passwd: files") || strings.Count(o.Stderr.Text(), "\n") != 3 {
		t.Errorf("a tool sees %q %q", rest, o.Stderr.Text())
	}
	// Without mounts it has no passwd at all.
	if o := mustRun(t, Landlock, shell(inside(t), "cat /etc/passwd")); o.ExitCode == 0 {
		t.Errorf("landlock: /etc/passwd is %q", o.Stdout.Text())
	}
}

// TestNothingVanishes: a write outside the work directory is an error, even if
// the work directory is below /tmp; /tmp itself is writable.
func TestNothingVanishes(t *testing.T) {
	work := inside(t)
	o := mustRun(t, Full, shell(work, "echo x >../lost.txt && echo wrote; mkdir ../lost && echo wrote; echo x >/tmp/scratch && echo x >mine && echo fine"))
	if o.Stdout.Text() != "fine\n" || !strings.Contains(o.Stderr.Text(), "Read-only file system") {
		t.Errorf("Run = %q %q, want an error for what would be gone", o.Stdout.Text(), o.Stderr.Text())
	}
}

// TestReadOnlyWork: a read-only work directory cannot be written.
func TestReadOnlyWork(t *testing.T) {
	for _, p := range []Profile{Full, Landlock} {
		work := inside(t)
		must(t, work.WriteFile("there", []byte("there\n"), 0o644))
		s := shell(work, "cat there; echo x >new && echo wrote; echo x >>there && echo wrote; rm -f there && echo wrote; true")
		s.ReadOnly = true
		says(t, mustRun(t, p, s), "there\n")
		s.ReadOnly = false
		says(t, mustRun(t, p, s), "there\nwrote\nwrote\nwrote\n")
	}
}
