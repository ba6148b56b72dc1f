package confine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Main is the helper's whole life. It does not return.
func Main() {
	unix.CloseOnExec(ControlFD)
	// What we were born with takes the place of the tool's streams later.
	null, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, ControlFD+1)
	if err != nil {
		fail("streams", err)
	}
	o, err := await()
	if err != nil {
		fail("order", err)
	}
	first()
	port, missing, err := surround(o)
	if err != nil {
		fail("namespaces", err)
	}
	s, started, err := prepare(o, port)
	if err != nil {
		fail("prepare", err)
	}
	started.Missing = append(missing, started.Missing...)
	// The tool runs under the same user: it must not look into us.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fail("dumpable", err)
	}
	pid, layer, err := s.run()
	if err != nil {
		fail(layer, err)
	}
	letGo(null)
	say(Message{Started: started}, nil)
	time.AfterFunc(restAfter, dropCodePages)
	go obey(pid, o.Namespaces)
	if o.Memory > 0 {
		go watchMemory(pid, o.Memory, o.Namespaces, o.OpenFiles)
	}
	status := reap(pid)
	sweep(o.Namespaces)
	say(Message{Ended: ended(status)}, nil)
	os.Exit(0)
}

// first makes us, and so the tool, the first to be killed when the machine is
// out of memory. It is no promise: there may be no /proc.
func first() {
	fd, err := unix.Open("/proc/self/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	unix.Write(fd, []byte("1000"))
	unix.Close(fd)
}

// letGo replaces the tool's streams with null, so that they end when the tool and
// its children do.
func letGo(null int) {
	for fd := range 3 {
		unix.Dup3(null, fd, 0)
	}
}

// Hold keeps the namespaces it was born in alive until its stdin ends.
func Hold() {
	var b [1]byte
	for {
		if _, err := unix.Read(0, b[:]); err != unix.EINTR {
			os.Exit(0)
		}
	}
}

// Trial makes the system calls that the runtime uses to confine a program, with
// meaningless arguments. Their results do not matter, only that they return
// instead of killing the process.
func Trial() {
	const none = ^uintptr(0)
	for _, nr := range []uintptr{
		unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_LANDLOCK_CREATE_RULESET,
		unix.SYS_MEMFD_CREATE, unix.SYS_SECCOMP,
	} {
		unix.RawSyscall6(nr, none, 0, none, none, none, none)
	}
	os.Exit(0)
}

// await waits for the order and takes the tool's streams as our own. When the
// runtime hangs up instead, there is nothing to do.
func await() (*Order, error) {
	rest()
	n, _, fds, err := receive(MaxHandles)
	if err == nil && n == 0 {
		os.Exit(0)
	}
	if err != nil || len(fds) < 4 {
		return nil, fmt.Errorf("%d descriptors: %w", len(fds), err)
	}
	for i := range 3 {
		if err := unix.Dup3(fds[i], i, 0); err != nil {
			return nil, err
		}
		unix.Close(fds[i])
	}
	return readOrder(fds[3], fds[4:])
}

// readOrder reads an order and puts descriptors in place of handle numbers.
func readOrder(fd int, handles []int) (*Order, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	data := make([]byte, st.Size)
	for n := 0; n < len(data); {
		m, err := unix.Pread(fd, data[n:], int64(n))
		if err != nil || m == 0 {
			return nil, fmt.Errorf("read %d of %d bytes: %w", n, len(data), err)
		}
		n += m
	}
	o, err := DecodeOrder(data)
	if err != nil {
		return nil, err
	}
	refs := []*int{&o.DirFD, &o.WorkFD}
	for i := range o.Mounts {
		refs = append(refs, &o.Mounts[i].FD)
	}
	for _, ref := range refs {
		switch {
		case *ref == 0:
		case *ref < 0 || *ref > len(handles):
			return nil, fmt.Errorf("handle %d of %d", *ref, len(handles))
		default:
			*ref = handles[*ref-1]
		}
	}
	return o, nil
}

// surround changes what is around the process: network, mounts, whose child
// orphans become.
func surround(o *Order) (port int, missing []string, err error) {
	if o.Network {
		if port, err = listen(o.Namespaces); err != nil {
			return 0, nil, fmt.Errorf("egress: %w", err)
		}
	}
	if !o.Namespaces {
		return port, nil, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if o.OpenFiles {
		missing, err = openRoot(o)
	} else {
		missing, err = buildRoot(o)
	}
	return port, missing, err
}

// obey does what the runtime says while the tool runs. When the runtime is
// gone, or hangs up, everything dies: with namespaces because we are init, and
// otherwise because we sweep.
func obey(pid int, init bool) {
	var b [1]byte
	for {
		n, err := readAll(ControlFD, b[:])
		if err == nil && n == 1 {
			unix.Kill(-pid, unix.SIGTERM)
			continue
		}
		if init {
			os.Exit(0)
		}
		unix.Kill(pid, unix.SIGKILL) // reap sees it end, and sweeps
		return
	}
}

// reap waits for the tool and for every orphan that dies before it.
func reap(pid int) unix.WaitStatus {
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			fail("wait", err)
		}
		if got == pid && (ws.Exited() || ws.Signaled()) {
			return ws
		}
	}
}

// sweep kills every descendant and returns when all are gone. As init of a
// namespace that is everyone else in it. Otherwise each that dies hands its
// children to us, the subreaper, so killing children until there are none
// reaches all of them, whatever session they made for themselves.
func sweep(namespaces bool) {
	init := namespaces && os.Getpid() == 1 // or we would kill the whole machine
	for {
		got, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return
		}
		if got > 0 || errors.Is(err, unix.EINTR) {
			continue
		}
		if init {
			unix.Kill(-1, unix.SIGKILL)
		} else {
			for _, pid := range children() {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		// Not a wait for one of them: a list of /proc can miss a process that has
		// just come to us, and that one would be waited for without being killed.
		time.Sleep(time.Millisecond)
	}
}

// children lists our living children from /proc.
func children() []int {
	me := os.Getpid()
	var list []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid, ppid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name may hold anything, so fields are counted from its end.
		rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
		var state string
		if _, err := fmt.Sscan(rest, &state, &ppid); err == nil && ppid == me && state != "Z" {
			list = append(list, pid)
		}
	}
	return list
}

func ended(ws unix.WaitStatus) *Ended {
	e := &Ended{Code: ws.ExitStatus(), Starved: starved.Load()}
	if ws.Signaled() {
		e.Signal = int(ws.Signal())
	}
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &ru) == nil {
		e.UserUS = ru.Utime.Nano() / 1000
		e.SysUS = ru.Stime.Nano() / 1000
		e.RSSKB = int64(ru.Maxrss)
	}
	return e
}

// say sends one message to the runtime, with a descriptor where there is one.
func say(m Message, rights []byte) {
	data := m.Encode()
	for {
		err := unix.Sendmsg(ControlFD, data, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func fail(layer string, err error) {
	f := &Failed{Layer: layer, Cause: err.Error()}
	var errno unix.Errno
	if errors.As(err, &errno) {
		f.Errno = int(errno)
	}
	say(Message{Failed: f}, nil)
	os.Exit(FailedStatus)
}

// listen opens the door to the egress proxy: a listener in the tool's own
// network whose descriptor goes to the runtime. The runtime accepts on it
// itself, so nothing of the tool's traffic passes through the helper.
func listen(own bool) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if own {
		ifr, err := unix.NewIfreq("lo")
		if err != nil {
			return 0, err
		}
		ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
			return 0, fmt.Errorf("raise loopback: %w", err)
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("bind: %w", err)
	}
	if err := unix.Listen(fd, 128); err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	port := sa.(*unix.SockaddrInet4).Port
	say(Message{Listening: &Listening{Port: port}}, unix.UnixRights(fd))
	return port, nil
}
