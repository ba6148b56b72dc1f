package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// helperEnv spares the helper's Go runtime what a life of milliseconds does
// not need: a second processor, looking for CPU quotas, and collecting
// garbage, but where a [broker] may work for as long as the tool lives, or the
// tool is one that lives long.
func helperEnv(shape Shape) []string {
	env := Environment("GODEBUG=containermaxprocs=0,updatemaxprocs=0")
	if shape == Namespaces {
		env = append(env, "GOGC=off")
	}
	return env
}

// Start starts a helper that is to be told its order through control. With
// namespaces it is the init of its own, and the clone is a whole fork, which
// takes the longer the more memory the process has; so a large one lets a
// [Nest] do that. cgroup may be nil.
func Start(shape Shape, control, cgroup *os.File) (*os.Process, error) {
	a, err := attributes(shape, cgroup)
	if err != nil {
		return nil, err
	}
	return start(a, helperEnv(shape), control)
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
func attributes(shape Shape, cgroup *os.File) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Setsid: true}
	if cgroup != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(cgroup.Fd())
	}
	if shape&Namespaces == 0 {
		return a, nil
	}
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	if shape&OpenNetwork == 0 {
		a.Cloneflags |= syscall.CLONE_NEWNET
	}
	if shape&OpenFiles == 0 {
		// Memory shared by name and the machine's name are like files to those
		// who had them.
		a.Cloneflags |= syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	} else if os.Getuid() == 0 {
		return a, stayRoot(a)
	}
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
	return a, nil
}

// stayRoot lets root stay root among files, and only there: in a namespace of
// its own that knows every user by the same number its rights over files are
// as they were, and those over the machine are none.
func stayRoot(a *syscall.SysProcAttr) (err error) {
	if a.UidMappings, err = sameNumbers("/proc/self/uid_map"); err != nil {
		return err
	}
	a.GidMappings, err = sameNumbers("/proc/self/gid_map")
	a.GidMappingsEnableSetgroups = true
	return err
}

// sameNumbers maps every number there is here to itself.
func sameNumbers(file string) ([]syscall.SysProcIDMap, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []syscall.SysProcIDMap
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("%s: %q is not a mapping", file, line)
		}
		first, err1 := strconv.Atoi(f[0])
		size, err2 := strconv.Atoi(f[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
	}
	return list, nil
}

// Nest is the life of a small process that starts helpers with namespaces for
// a runtime that may be large. They are the runtime's children, not its own.
// Each request brings the helper's control socket; there are no cgroups here,
// since a clone into one cannot have another's parent. A nest ends when the
// runtime hangs up, and does not return.
func Nest() {
	unix.CloseOnExec(ControlFD)
	for {
		rest()
		n, word, fds, err := receive(1)
		if err == nil && n == 0 {
			os.Exit(0)
		}
		if err != nil || len(fds) != 1 {
			os.Exit(FailedStatus)
		}
		var m Hatched
		control := os.NewFile(uintptr(fds[0]), "control")
		if p, err := hatch(Shape(word), control); err == nil {
			m.PID = p.Pid
			p.Release()
		}
		control.Close()
		say(Message{Hatched: &m}, nil)
	}
}

// hatch starts a helper that is the runtime's child.
func hatch(shape Shape, control *os.File) (*os.Process, error) {
	a, err := attributes(shape, nil)
	if err != nil {
		return nil, err
	}
	a.Cloneflags |= syscall.CLONE_PARENT
	return start(a, helperEnv(shape), control)
}

// receive takes one packet, of a byte, and its descriptors from the control
// socket.
func receive(most int) (n int, said byte, fds []int, err error) {
	word, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*most))
	got := 0
	err = error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		n, got, _, _, err = unix.Recvmsg(ControlFD, word, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil || n == 0 {
		return n, 0, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:got])
	if err != nil || len(messages) != 1 {
		return n, 0, nil, fmt.Errorf("%d control messages: %w", len(messages), err)
	}
	fds, err = unix.ParseUnixRights(&messages[0])
	return n, word[0], fds, err
}
