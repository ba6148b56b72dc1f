package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/duration"
	"ken/internal/run/sandbox/confine"
)

var probed = untilClear(probe)

func probe() Report {
	var missing []string
	unclear := func(err error) Report {
		return Report{Isolation: Isolation{Profile: None, Cgroup: "none", Missing: []string{"sandbox: " + err.Error()}, Required: BestEffort}, Unclear: err.Error()}
	}
	if err := trial(); scarce(err) {
		return unclear(err)
	} else if err != nil {
		return Report{Isolation: Isolation{Profile: None, Cgroup: "none", Missing: []string{"sandbox: " + err.Error()}, Required: BestEffort}}
	}
	for _, p := range []Profile{Full, Landlock} {
		r, err := try(p)
		if scarce(err) {
			return unclear(err)
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", p, err))
			continue
		}
		r.Isolation.Missing = append(missing, r.Isolation.Missing...)
		return r
	}
	return Report{Isolation: Isolation{Profile: None, Cgroup: "none", Missing: missing, Required: BestEffort}}
}

// errScarce is the cause of a try that was about something else than isolation.
var errScarce = errors.New("the sandbox could not be probed")

// scarce reports whether an error is for want of something that may be there the
// next time. ENOSPC is not such a thing: where namespaces are forbidden, making
// one fails with it.
func scarce(err error) bool {
	for _, want := range []error{errScarce, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// trial runs the system calls in another process first, because a filter, such
// as systemd's, may kill the process that makes them.
func trial() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !bytes.Contains(status, []byte("\nSeccomp:\t2")) {
		return nil // no filter
	}
	p, err := os.StartProcess(selfExe, []string{confine.TrialName}, &os.ProcAttr{Env: confine.Environment()})
	if err != nil {
		return fmt.Errorf("start another process: %w", err)
	}
	state, err := p.Wait()
	if err != nil {
		return fmt.Errorf("wait for another process: %w", err)
	}
	if !state.Success() {
		return fmt.Errorf("a system call filter around Ken kills processes that use the sandbox's system calls (%s): let SystemCallFilter of the service allow @mount and @sandbox, or set SystemCallErrorNumber", state)
	}
	return nil
}

// gaps are the attempts that a profile is known not to stop: they are
// reported and do not disqualify it.
var gaps = map[Profile][]string{Landlock: {"stat"}}

// try lets a canary loose in one profile. An error says why the profile is not
// to be relied on.
func try(p Profile) (Report, error) {
	r, err := release(p)
	if err != nil {
		return r, err
	}
	for _, a := range r.Attempts {
		switch {
		case a.Stopped:
		case slices.Contains(gaps[p], a.Name):
			r.Isolation.Missing = append(r.Isolation.Missing, a.Name+": possible outside where permissions allow")
		default:
			return r, fmt.Errorf("the test program escaped the sandbox: %s: %s", a.Name, a.Detail)
		}
	}
	if p == Landlock {
		r.Isolation.Missing = append(r.Isolation.Missing, "netns, pidns, ro_root: not in this profile")
	}
	return r, nil
}

// release runs the canary in one profile and reports what came of it.
func release(p Profile) (Report, error) {
	t, err := newTrap()
	if err != nil {
		return Report{}, fmt.Errorf("%w: prepare the test: %w", errScarce, err)
	}
	defer t.close()
	s, err := Spec{
		self: true, Require: BestEffort, Work: t.work,
		Args:   append([]string{confine.CanaryName}, t.attempts()...),
		Env:    confine.Environment(),
		Limits: Limits{Wall: 10 * time.Second, FileSize: mib},
	}.filled()
	if err != nil {
		return Report{}, err
	}
	o, err := runUnder(context.Background(), s, Isolation{Profile: p})
	if err != nil {
		return Report{}, err
	}
	r := Report{Isolation: o.Isolation}
	if o.End == TimedOut {
		return r, fmt.Errorf("%w: the test program took more than %s", errScarce, duration.Text(s.Limits.Wall))
	}
	if o.End != Exited || o.ExitCode != 0 {
		return r, fmt.Errorf("the test program did not exit normally: %s (code %d, %s): %s", o.End, o.ExitCode, o.Signal, o.Stderr.Text())
	}
	if r.Attempts, err = t.judge(o.Stdout.Head); t.lacks != "" {
		r.Isolation.Missing = append(r.Isolation.Missing, t.lacks)
	}
	return r, err
}

// A trap is a place with things a canary must not reach, which notice it when
// it does.
type trap struct {
	dir             string
	work            *os.Root
	secret          string
	tcp, udp        int
	tcpPort, udport int
	unixFD, gramFD  int
	shm, shmKey     int // System V memory; shm is -1 where there is none
	victim          *os.Process
	leash           *os.File // when closed, the victim ends
	lacks           string   // what the canary could not do and should
}

func newTrap() (t *trap, err error) {
	t = &trap{tcp: -1, udp: -1, unixFD: -1, gramFD: -1, shm: -1}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.dir, err = os.MkdirTemp("", "ken-canary-"); err != nil {
		return t, err
	}
	work := filepath.Join(t.dir, "work")
	if err = os.Mkdir(work, 0o700); err != nil {
		return t, err
	}
	if t.work, err = os.OpenRoot(work); err != nil {
		return t, err
	}
	t.secret = filepath.Join(t.dir, "secret")
	if err = os.WriteFile(t.secret, []byte("secret"), 0o644); err != nil {
		return t, err
	}
	if err = os.Symlink(t.secret, filepath.Join(work, "link")); err != nil {
		return t, err
	}
	if t.tcp, t.tcpPort, err = inet(unix.SOCK_STREAM); err != nil {
		return t, err
	}
	if t.udp, t.udport, err = inet(unix.SOCK_DGRAM); err != nil {
		return t, err
	}
	if t.unixFD, err = local(unix.SOCK_STREAM, t.socket()); err != nil {
		return t, err
	}
	if err = unix.Listen(t.unixFD, 8); err != nil {
		return t, err
	}
	if t.gramFD, err = local(unix.SOCK_DGRAM, t.gram()); err != nil {
		return t, err
	}
	t.memory()
	return t, t.stake()
}

// memory makes memory that processes share by a key. Where the machine has no
// such thing there is nothing to reach.
func (t *trap) memory() {
	for range 8 {
		t.shmKey = 1 + int(rand.Int32N(1<<30))
		id, err := unix.SysvShmGet(t.shmKey, 1, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
		if err == nil {
			t.shm = id
			return
		}
	}
}

// local opens a unix socket that anyone may write to.
func local(kind int, name string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return fd, err
	}
	return fd, os.Chmod(name, 0o777)
}

// stake starts the process that the canary tries to signal and to read.
func (t *trap) stake() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	t.leash = w
	t.victim, err = os.StartProcess(selfExe, []string{confine.HoldName},
		&os.ProcAttr{Env: []string{confine.VictimEnv + "=1"}, Files: []*os.File{r}})
	return err
}

func (t *trap) socket() string { return filepath.Join(t.dir, "socket") }

func (t *trap) gram() string { return filepath.Join(t.dir, "gram") }

func inet(kind int) (fd, port int, err error) {
	fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, 0, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fd, 0, err
	}
	if kind == unix.SOCK_STREAM {
		if err = unix.Listen(fd, 8); err != nil {
			return fd, 0, err
		}
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return fd, 0, err
	}
	return fd, sa.(*unix.SockaddrInet4).Port, nil
}

func (t *trap) close() {
	if t.shm >= 0 {
		unix.SysvShmCtl(t.shm, unix.IPC_RMID, nil)
	}
	for _, fd := range []int{t.tcp, t.udp, t.unixFD, t.gramFD} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if t.leash != nil {
		t.leash.Close()
	}
	if t.victim != nil {
		t.victim.Wait()
	}
	if t.work != nil {
		t.work.Close()
	}
	if t.dir != "" {
		os.RemoveAll(t.dir)
	}
}

// attempts are the canary's arguments. The first must succeed, and the second
// should.
func (t *trap) attempts() []string {
	work, victim := t.work.Name(), strconv.Itoa(t.victim.Pid)
	return []string{
		"write=" + filepath.Join(work, "mine"),
		"chmod=" + filepath.Join(work, "mine"),
		"read=" + t.secret,
		"symlink-read=" + filepath.Join(work, "link"),
		"append=" + t.secret,
		"chmod=" + t.secret,
		"utime=" + t.secret,
		"setuid=" + filepath.Join(work, "mine"),
		"stat=" + t.secret,
		"tcp=" + strconv.Itoa(t.tcpPort),
		"udp=" + strconv.Itoa(t.udport),
		"unix=" + t.socket(),
		"datagram=" + t.gram(),
		"shm=" + strconv.Itoa(t.shmKey),
		"environ=/proc/" + victim + "/environ",
		"limit=" + victim,
		"signal=" + victim,
		"userns",
		"mount",
		"ptrace",
		"big-file=" + filepath.Join(work, "big") + ":" + strconv.Itoa(2*mib),
		"daemon=" + filepath.Join(work, "lock"),
	}
}

// judge compares what the canary said with what the trap saw; the worse counts.
func (t *trap) judge(said []byte) ([]Attempt, error) {
	var list []Attempt
	dec := json.NewDecoder(bytes.NewReader(said))
	for dec.More() {
		var a confine.Attempt
		if err := dec.Decode(&a); err != nil {
			return nil, fmt.Errorf("read the report of the test program: %w", err)
		}
		list = append(list, Attempt{Name: a.Name, Stopped: a.Stopped != "", Detail: a.Stopped})
	}
	if want := t.attempts(); len(list) != len(want) {
		return nil, fmt.Errorf("the test program made %d of %d attempts", len(list), len(want))
	}
	if list[0].Stopped {
		return nil, errors.New("the test program could not write in its work directory: " + list[0].Detail)
	}
	if list[1].Stopped {
		t.lacks = "attributes: a tool cannot change the attributes of its own files: " + list[1].Detail
	}
	list = list[2:]
	for i := range list {
		if seen := t.seen(list[i].Name); seen != "" {
			list[i].Stopped, list[i].Detail = false, seen
		} else if n := list[i].Name; !list[i].Stopped && (n == "daemon" || n == "signal") {
			list[i].Stopped, list[i].Detail = true, "without effect" // killed, or someone else's number
		}
	}
	return list, nil
}

// seen says what the trap noticed of an attempt; "" for nothing.
func (t *trap) seen(name string) string {
	buf := make([]byte, 16)
	switch name {
	case "append":
		if data, _ := os.ReadFile(t.secret); string(data) != "secret" {
			return "the file changed"
		}
	case "chmod":
		if st, err := os.Stat(t.secret); err == nil && st.Mode().Perm() == 0o777 {
			return "the mode changed"
		}
	case "utime":
		if st, err := os.Stat(t.secret); err == nil && st.ModTime().Equal(time.Unix(1, 0)) {
			return "the time changed"
		}
	case "setuid":
		if st, err := t.work.Stat("mine"); err == nil && st.Mode()&os.ModeSetuid != 0 {
			return "a file now runs as its owner"
		}
	case "datagram":
		if n, _, err := unix.Recvfrom(t.gramFD, buf, 0); err == nil && n > 0 {
			return "a datagram came"
		}
	case "limit":
		var now unix.Rlimit
		if unix.Prlimit(t.victim.Pid, unix.RLIMIT_NOFILE, nil, &now) == nil && now.Cur == confine.CanaryLimit {
			return "a limit of a process outside changed"
		}
	case "tcp", "unix":
		fd := t.tcp
		if name == "unix" {
			fd = t.unixFD
		}
		if c, _, err := unix.Accept(fd); err == nil {
			unix.Close(c)
			return "a connection came"
		}
	case "udp":
		if n, _, err := unix.Recvfrom(t.udp, buf, 0); err == nil && n > 0 {
			return "a packet came"
		}
	case "big-file":
		if st, err := t.work.Stat("big"); err == nil && st.Size() > mib {
			return fmt.Sprintf("%d bytes written", st.Size())
		}
	case "signal":
		return t.wounded()
	case "daemon":
		return t.survivor()
	}
	return ""
}

// survivor reports whether someone still holds the daemon's lock.
func (t *trap) survivor() string {
	f, err := t.work.Open("lock")
	if err != nil {
		return ""
	}
	defer f.Close()
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return "a process survived"
	}
	return ""
}

// wounded reports whether the victim died of a signal.
func (t *trap) wounded() string {
	t.leash.Close()
	t.leash = nil
	state, err := t.victim.Wait()
	t.victim = nil
	if err != nil || state.Success() {
		return ""
	}
	return "a process outside died: " + state.String()
}
