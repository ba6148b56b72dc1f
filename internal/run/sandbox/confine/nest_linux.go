package confine

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ToolUID is who a tool of root is: no user of the system, not nobody, and
// outside what service managers hand out.
const ToolUID = 65533

// helperEnv spares the helper's Go runtime what a life of milliseconds does
// not need: a second processor, looking for CPU quotas, and collecting
// garbage, but where a [broker] may work for as long as the tool lives.
func helperEnv(namespaces bool) []string {
	env := Environment("GODEBUG=containermaxprocs=0,updatemaxprocs=0")
	if namespaces {
		env = append(env, "GOGC=off")
	}
	return env
}

// Start starts a helper that is to be told its order through control. With
// namespaces it is the init of its own, and the clone is a whole fork, which
// takes the longer the more memory the process has; so a large one lets a
// [Nest] do that. cgroup may be nil.
func Start(namespaces bool, control, cgroup *os.File) (*os.Process, error) {
	return start(attributes(namespaces, cgroup), helperEnv(namespaces), control)
}

func start(attr *syscall.SysProcAttr, env []string, control *os.File) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return os.StartProcess("/proc/self/exe", []string{Name}, &os.ProcAttr{
		Dir: "/", Env: env, Files: []*os.File{null, null, null, control}, Sys: attr,
	})
}

// attributes are how a helper is cloned.
func attributes(namespaces bool, cgroup *os.File) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if cgroup != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(cgroup.Fd())
	}
	if !namespaces {
		return a
	}
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
		syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = ToolUID, ToolUID
		a.Credential = &syscall.Credential{Uid: ToolUID, Gid: ToolUID}
		a.GidMappingsEnableSetgroups = true
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// The helper's rights in its own namespaces, lost at the tool's exec.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	return a
}

// Nest is the life of a small process that starts helpers with namespaces for
// a runtime that may be large. They are the runtime's children, not its own.
// Each request brings the helper's control socket; there are no cgroups here,
// since a clone into one cannot have another's parent. A nest ends when the
// runtime hangs up, and does not return.
func Nest() {
	unix.CloseOnExec(ControlFD)
	for {
		n, fds, err := receive(1)
		if err == nil && n == 0 {
			os.Exit(0)
		}
		if err != nil || len(fds) != 1 {
			os.Exit(FailedStatus)
		}
		var m Hatched
		control := os.NewFile(uintptr(fds[0]), "control")
		a := attributes(true, nil)
		a.Cloneflags |= syscall.CLONE_PARENT
		if p, err := start(a, helperEnv(true), control); err == nil {
			m.PID = p.Pid
			p.Release()
		}
		control.Close()
		say(Message{Hatched: &m}, nil)
	}
}

// receive takes one packet and its descriptors from the control socket.
func receive(most int) (n int, fds []int, err error) {
	word, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*most))
	got := 0
	err = error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		n, got, _, _, err = unix.Recvmsg(ControlFD, word, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil || n == 0 {
		return n, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:got])
	if err != nil || len(messages) != 1 {
		return n, nil, fmt.Errorf("%d control messages: %w", len(messages), err)
	}
	fds, err = unix.ParseUnixRights(&messages[0])
	return n, fds, err
}
