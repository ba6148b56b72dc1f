//go:build linux

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// underFilter, in the environment, makes a test binary install a system call
// filter, run a program with every requirement, and print the results.
const underFilter = "KEN_TEST_UNDER_FILTER"

// mountCalls are the system calls that container and service managers block.
var mountCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
}

var landlockCalls = []uint32{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF}

// A fence is a filter like that of a service manager.
type fence struct {
	clone3  uint32 // result of clone3
	refused []uint32
	how     uint32 // result of the blocked calls
	nested  bool   // clone may make namespaces
}

func fences() map[string]fence {
	eperm, enosys, kill := unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS), uint32(unix.SECCOMP_RET_KILL_PROCESS)
	return map[string]fence{
		"no clone3":           {clone3: enosys, nested: true},
		"docker":              {clone3: enosys, refused: mountCalls, how: eperm},
		"docker, no landlock": {clone3: enosys, refused: slices.Concat(mountCalls, landlockCalls), how: eperm},
		"systemd":             {clone3: enosys, refused: slices.Concat(mountCalls, landlockCalls), how: kill, nested: true},
	}
}

// enter puts the whole process under the filter, for good.
func (f fence) enter() error {
	const (
		load, equal, and, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		namespaces            = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	)
	prog := []unix.SockFilter{{Code: load, K: 0}}
	on := func(nr, answer uint32) {
		prog = append(prog, unix.SockFilter{Code: equal, K: nr, Jf: 1}, unix.SockFilter{Code: ret, K: answer})
	}
	on(unix.SYS_CLONE3, f.clone3)
	for _, nr := range f.refused {
		on(nr, f.how)
	}
	if !f.nested {
		prog = append(prog, unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 3}, unix.SockFilter{Code: load, K: 16},
			unix.SockFilter{Code: and, K: namespaces, Jf: 1}, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	prog = append(prog, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&p))); errno != 0 {
		return errno
	}
	return nil
}

// filtered is the main function of a test binary under a filter.
func filtered(name string) error {
	if err := fences()[name].enter(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sandbox-filtered-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	work, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	said := map[string]string{}
	for _, require := range []Requirement{Off, BestEffort, RequireLandlock, RequireFull} {
		o, err := Run(context.Background(), Spec{Path: "/bin/echo", Args: []string{"echo", "hello"}, Work: work, Require: require, Limits: Limits{Wall: testkit.Patience}})
		said[string(require)] = fmt.Sprintf("%s %d %s", o.Isolation.Profile, o.ExitCode, strings.TrimSpace(o.Stdout.Text()))
		if r, ok := errors.AsType[*Refusal](err); ok {
			said[string(require)] = "refused: " + r.Error()
		} else if err != nil {
			said[string(require)] = err.Error()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

// TestUnderFilters: in a container or service whose manager blocks system
// calls, programs that need no isolation run, the strongest available profile
// is used, and an unavailable profile is denied with a helpful message. No
// process of Ken is killed.
func TestUnderFilters(t *testing.T) {
	testkit.CI(t, "runs the tests again")
	t.Parallel()
	want := map[string]map[Requirement]string{
		"no clone3":           {Off: "none 0 hello", BestEffort: "full 0 hello", RequireLandlock: "full 0 hello", RequireFull: "full 0 hello"},
		"docker":              {Off: "none 0 hello", BestEffort: "landlock 0 hello", RequireLandlock: "landlock 0 hello", RequireFull: "refused: "},
		"docker, no landlock": {Off: "none 0 hello", BestEffort: "none 0 hello", RequireLandlock: "refused: ", RequireFull: "refused: "},
		"systemd":             {Off: "none 0 hello", BestEffort: "none 0 hello", RequireLandlock: "refused: ", RequireFull: "refused: "},
	}
	for name := range fences() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), underFilter+"="+name)
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, errs.String())
			}
			var got map[Requirement]string
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for require, w := range want[name] {
				if g := got[require]; !strings.HasPrefix(g, w) || w != "refused: " && g != w {
					t.Errorf("%s: %q, want %q", require, g, w)
				} else if w == "refused: " && !strings.Contains(g, "sandbox.require") {
					t.Errorf("%s: %q, want it to name sandbox.require", require, g)
				}
			}
		})
	}
}
