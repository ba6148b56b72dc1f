//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
)

// call lets the canary make one system call with zeros for arguments and
// returns what it said of it.
func call(t *testing.T, p Profile, nr uint64) (string, Outcome) {
	t.Helper()
	s, err := canary(inside(t), fmt.Sprintf("syscall=%d", nr)).filled()
	if err != nil {
		t.Fatal(err)
	}
	o, err := runUnder(context.Background(), s, Isolation{Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	return o.Stdout.Text(), o
}

// TestSeccomp makes calls that a filter refuses before the kernel looks at
// their arguments, and the same calls without one: there the kernel says
// something else about nonsense.
func TestSeccomp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		nr     uint64
		with   string
		before string // what must not be said without a filter
	}{
		{"unshare", unix.SYS_UNSHARE, "operation not permitted", "stopped"},
		{"setns", unix.SYS_SETNS, "operation not permitted", "not permitted"},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, "operation not permitted", "not permitted"},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, "operation not permitted", "not permitted"},
		{"chroot", unix.SYS_CHROOT, "operation not permitted", "not permitted"},
		{"socket", unix.SYS_SOCKET, "operation not permitted", "not permitted"},
		{"clone3", unix.SYS_CLONE3, "function not implemented", "not implemented"},
		{"keyctl", unix.SYS_KEYCTL, "operation not permitted", "not permitted"},
	}
	for _, tt := range tests {
		if got, _ := call(t, Full, tt.nr); !strings.Contains(got, tt.with) {
			t.Errorf("%s = %q, want %q", tt.name, got, tt.with)
		}
		if got, _ := call(t, None, tt.nr); !strings.Contains(got, `"name"`) || strings.Contains(got, tt.before) {
			t.Errorf("control: %s = %q, want anything but %q", tt.name, got, tt.before)
		}
	}
	if got, _ := call(t, Full, unix.SYS_GETPID); strings.Contains(got, "stopped") {
		t.Errorf("getpid = %q, want it allowed", got)
	}
}

// TestSeccompShared: without namespaces of its own a tool has nothing to do
// with what processes share by name; in them it has its own.
func TestSeccompShared(t *testing.T) {
	t.Parallel()
	for name, nr := range map[string]uint64{
		"shmget": unix.SYS_SHMGET, "shmat": unix.SYS_SHMAT, "shmctl": unix.SYS_SHMCTL,
		"msgget": unix.SYS_MSGGET, "msgsnd": unix.SYS_MSGSND, "msgrcv": unix.SYS_MSGRCV, "msgctl": unix.SYS_MSGCTL,
		"semget": unix.SYS_SEMGET, "semop": unix.SYS_SEMOP, "semtimedop": unix.SYS_SEMTIMEDOP, "semctl": unix.SYS_SEMCTL,
		"mq_open": unix.SYS_MQ_OPEN, "mq_unlink": unix.SYS_MQ_UNLINK,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a canary that sees nothing of /proc takes a second to end under the race detector
			if got, _ := call(t, Landlock, nr); !strings.Contains(got, "operation not permitted") {
				t.Errorf("%s = %q, want it refused", name, got)
			}
			if got, _ := call(t, Full, nr); !strings.Contains(got, `"name"`) || strings.Contains(got, "not permitted") {
				t.Errorf("control: %s in namespaces = %q, want anything but a refusal", name, got)
			}
		})
	}
}

// TestSeccompOtherNames makes a call under its x32 number.
func TestSeccompOtherNames(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("cannot here: only amd64 has a second set of numbers")
	}
	if _, o := call(t, Full, 0x40000000|unix.SYS_GETPID); o.Signal != "SIGSYS" {
		t.Errorf("x32 getpid: %s %s, want SIGSYS", o.End, o.Signal)
	}
	if _, o := call(t, None, 0x40000000|unix.SYS_GETPID); o.End != Exited {
		t.Errorf("control: x32 getpid: %s %s, want exited", o.End, o.Signal)
	}
}

// TestNothingLeaks runs many at once and then counts what is left.
func TestNothingLeaks(t *testing.T) {
	work := inside(t)
	round := func(p Profile) {
		done := make(chan error, 20)
		for range cap(done) {
			go func() {
				o, err := runIn(context.Background(), p, shell(work, "echo $$"))
				if err == nil && (o.ExitCode != 0 || o.Stdout.Bytes == 0) {
					err = fmt.Errorf("%+v", o)
				}
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	for _, p := range profiles {
		round(p)
		files, routines := open(), runtime.NumGoroutine()
		for range 3 {
			round(p)
		}
		eventually(t, fmt.Sprintf("%s: no more than %d files and %d goroutines", p, files+4, routines+4), func() bool {
			return open() <= files+4 && runtime.NumGoroutine() <= routines+4
		})
	}
}

// TestView shows the plan of a root for given paths.
func TestView(t *testing.T) {
	dir, err := os.MkdirTemp("", "view-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(dir+"/real/deep", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	v := systemView([]string{dir + "/link", dir + "/real/deep", dir + "/absent", "/etc/passwd", "/etc/group"}, []confine.File{{Path: "/etc/passwd"}})
	v.show(dir+"/real/deep", confine.Mount{Write: true})
	var got []string
	for _, m := range v.sorted() {
		got = append(got, fmt.Sprint(strings.TrimPrefix(m.Target, dir), " ", m.Write))
	}
	for _, l := range v.links {
		got = append(got, strings.TrimPrefix(l.Path, dir)+"->"+l.Target)
	}
	if want := "[/etc/group false /real false /real/deep true /link->real]"; fmt.Sprint(got) != want {
		t.Errorf("view = %v, want %s", got, want)
	}
}
