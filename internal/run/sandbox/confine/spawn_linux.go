package confine

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A step is one system call that the forked child makes before it becomes the
// tool. The child of a fork of a threaded program may do nothing else: no
// allocation, no lock, no growing stack. So all is prepared before the fork,
// and the child only walks the list.
type step struct {
	nr   uintptr
	args [6]uintptr
	may  uintptr // 1: its failure is no failure
}

// A spawn is a list of steps with their names and what their pointers refer to.
type spawn struct {
	steps  []step
	names  []string
	keep   []any
	pin    runtime.Pinner
	broker *broker // who is asked about some calls of the child; may be nil
}

func (s *spawn) add(name string, nr uintptr, args ...uintptr) {
	st := step{nr: nr}
	copy(st.args[:], args)
	s.steps = append(s.steps, st)
	s.names = append(s.names, name)
}

// maybe adds a step that is allowed to fail.
func (s *spawn) maybe(name string, nr uintptr, args ...uintptr) {
	s.add(name, nr, args...)
	s.steps[len(s.steps)-1].may = 1
}

// hold pins what p points to until the spawn has run and returns its address.
func hold[T any](s *spawn, p *T) uintptr {
	s.pin.Pin(p)
	s.keep = append(s.keep, p)
	return uintptr(unsafe.Pointer(p))
}

func (s *spawn) text(v string) (uintptr, error) {
	p, err := unix.BytePtrFromString(v)
	if err != nil {
		return 0, err
	}
	return hold(s, p), nil
}

// vector makes a NULL-terminated array of C strings.
func (s *spawn) vector(list [][]byte) (uintptr, error) {
	v := make([]uintptr, len(list)+1)
	for i, text := range list {
		p, err := s.text(string(text))
		if err != nil {
			return 0, err
		}
		v[i] = p
	}
	return hold(s, &v[0]), nil
}

// run forks and lets the child take the steps, the last of which must be an
// exec. It returns when the child has become the tool or has failed; then
// layer names the step.
func (s *spawn) run() (pid int, layer string, err error) {
	defer s.pin.Unpin()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, "pipe", err
	}
	defer unix.Close(pipe[0])

	runtime.LockOSThread()
	if s.broker == nil {
		defer runtime.UnlockOSThread()
	} else if err := s.broker.install(); err != nil {
		return 0, "broker", err
	}
	syscall.ForkLock.Lock()
	child := int(fork(unsafe.Pointer(&s.steps[0]), uintptr(len(s.steps)), uintptr(pipe[1]), new(scene)))
	syscall.ForkLock.Unlock()
	unix.Close(pipe[1])
	if child < 0 {
		return 0, "fork", unix.Errno(-child)
	}
	var report [2]uint64
	n, err := readAll(pipe[0], unsafe.Slice((*byte)(unsafe.Pointer(&report)), 16))
	runtime.KeepAlive(s)
	if err != nil {
		return 0, "start", err
	}
	if n == 0 {
		if s.broker != nil {
			go s.broker.serve()
		}
		return child, "", nil
	}
	unix.Wait4(child, nil, 0, nil)
	if n != 16 || report[0] >= uint64(len(s.names)) {
		return 0, "start", fmt.Errorf("the child sent an invalid message of %d bytes", n)
	}
	return 0, s.names[report[0]], unix.Errno(report[1])
}

func readAll(fd int, p []byte) (n int, err error) {
	for n < len(p) {
		m, err := unix.Read(fd, p[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || m == 0 {
			return n, err
		}
		n += m
	}
	return n, nil
}

// A scene is what the two sides of a fork keep in memory of their own, since
// they share a stack.
type scene struct {
	all, old uint64    // signal masks
	said     [2]uint64 // by the child: which step failed, and how
}

// fork makes the child and returns when it has execed or exited. The child
// shares our memory, which is why it may only walk its list: it writes nothing
// but its own variables and the scene. All signals are blocked around it, so
// that no Go signal handler runs in it; the list resets its handlers and mask.
//
//go:norace
//go:nosplit
func fork(steps unsafe.Pointer, n, report uintptr, sc *scene) uintptr {
	sc.all = ^uint64(0)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&sc.all)), uintptr(unsafe.Pointer(&sc.old)), 8, 0, 0)
	pid := vfork()
	if pid != 0 {
		syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&sc.old)), 0, 8, 0, 0)
		return pid
	}
	for i := uintptr(0); i < n; i++ {
		st := (*step)(unsafe.Pointer(uintptr(steps) + i*unsafe.Sizeof(step{})))
		_, _, errno := syscall.RawSyscall6(st.nr, st.args[0], st.args[1], st.args[2],
			st.args[3], st.args[4], st.args[5])
		if errno != 0 && st.may == 0 {
			sc.said[0], sc.said[1] = uint64(i), uint64(errno)
			syscall.RawSyscall6(unix.SYS_WRITE, report, uintptr(unsafe.Pointer(&sc.said)), 16, 0, 0, 0)
			break
		}
	}
	for {
		syscall.RawSyscall6(unix.SYS_EXIT_GROUP, FailedStatus, 0, 0, 0, 0, 0)
	}
}
