//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// call lets the canary make one system call with zeros for arguments and
// returns what it said of it.
func call(t *testing.T, p Profile, nr uint64) (string, Outcome) {
	t.Helper()
	s, err := canary(inside(t), fmt.Sprintf("syscall=%d", nr)).filled()
	must(t, err)
	o, err := runUnder(context.Background(), s, Isolation{Profile: p})
	must(t, err)
	return o.Stdout.Text(), o
}

// TestSeccomp makes calls that a filter refuses before the kernel looks at
// their arguments, and the same calls without one: there the kernel says
// something else about nonsense.
func TestSeccomp(t *testing.T) {
	testkit.CI(t, "starts dozens of tools")
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
	testkit.CI(t, "starts dozens of tools")
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
