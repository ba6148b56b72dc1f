package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Canary is the life of a process that runs where a tool would and tries what
// a bad tool would. Its arguments are attempts, "name=what"; it prints each
// [Attempt] as a line of JSON. It does not return.
func Canary() {
	out := json.NewEncoder(os.Stdout)
	for _, arg := range os.Args[1:] {
		name, what, _ := strings.Cut(arg, "=")
		a := Attempt{Name: name}
		if err := attempt(name, what); err != nil {
			a.Stopped = err.Error()
		}
		if err := out.Encode(a); err != nil {
			os.Exit(1)
		}
	}
	os.Exit(0)
}

func attempt(name, what string) error {
	switch name {
	case "read", "symlink-read":
		_, err := os.ReadFile(what)
		return err
	case "environ":
		data, err := os.ReadFile(what)
		if err == nil && !strings.Contains(string(data), VictimEnv) {
			err = errors.New("not the victim's")
		}
		return err
	case "write":
		return os.WriteFile(what, []byte("canary"), 0o644)
	case "append":
		f, err := os.OpenFile(what, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("canary")
		return err
	case "symlink":
		link, target, _ := strings.Cut(what, ":")
		return os.Symlink(target, link)
	case "chmod":
		return os.Chmod(what, 0o777)
	case "setuid":
		return unix.Fchmodat(unix.AT_FDCWD, what, unix.S_ISUID|0o755, 0)
	case "utime":
		return os.Chtimes(what, time.Unix(1, 0), time.Unix(1, 0))
	case "attribute":
		return unix.Setxattr(what, "user.canary", []byte("canary"), 0)
	case "mode":
		return makeWithMode(what)
	case "fchmod", "fchown", "futime":
		return changeOpen(name, what)
	case "shm":
		key, err := strconv.Atoi(what)
		if err != nil {
			return err
		}
		_, err = unix.SysvShmGet(key, 0, 0)
		return err
	case "limit":
		pid, err := another(what)
		if err != nil {
			return err
		}
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: CanaryLimit, Max: CanaryLimit}, nil)
	case "memory":
		return takeMemory(what)
	case "datagram":
		return sendDatagram(what)
	case "stat":
		_, err := os.Lstat(what)
		return err
	case "signal":
		pid, err := another(what)
		if err != nil {
			return err
		}
		return unix.Kill(pid, unix.SIGTERM)
	case "tcp", "udp", "unix", "abstract":
		return reach(name, what)
	case "userns":
		return nestedUser()
	case "mount":
		return unix.Mount("none", "/tmp", "tmpfs", 0, "")
	case "ptrace":
		return unix.PtraceAttach(os.Getppid())
	case "big-file":
		return bigFile(what)
	case "daemon":
		return daemon(what)
	case "env":
		if len(os.Environ()) == 0 {
			return errors.New("the environment is empty")
		}
		return nil
	case "syscall":
		nr, err := strconv.ParseUint(what, 0, 32)
		if err != nil {
			return err
		}
		if _, _, errno := unix.RawSyscall6(uintptr(nr), 0, 0, 0, 0, 0, 0); errno != 0 {
			return errno
		}
		return nil
	case "lock-and-stay":
		return lockAndStay(what)
	}
	return fmt.Errorf("unknown attempt %q", name)
}

// another reads the number of a process that is not this one.
func another(what string) (pid int, err error) {
	pid, err = strconv.Atoi(what)
	if err == nil && pid == os.Getpid() {
		err = errors.New("same number as this process")
	}
	return pid, err
}

// nestedUser makes a process in a user namespace of its own, in which it would
// have every capability.
func nestedUser() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{HoldName}, &os.ProcAttr{
		Files: []*os.File{null}, Sys: &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER},
	})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// reach sends one greeting by raw sockets.
func reach(kind, what string) error {
	family, typ := unix.AF_INET, unix.SOCK_STREAM
	var to unix.Sockaddr
	switch kind {
	case "unix":
		family, to = unix.AF_UNIX, &unix.SockaddrUnix{Name: what}
	case "abstract":
		family, to = unix.AF_UNIX, &unix.SockaddrUnix{Name: "@" + what}
	default:
		port, err := strconv.Atoi(what)
		if err != nil {
			return err
		}
		to = &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
		if kind == "udp" {
			typ = unix.SOCK_DGRAM
		}
	}
	fd, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_, err = unix.Write(fd, []byte("canary"))
	return err
}

// sendDatagram sends a greeting from one of a pair to a path.
func sendDatagram(what string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if err := unix.Connect(pair[0], &unix.SockaddrUnix{Name: what}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_, err = unix.Write(pair[0], []byte("canary"))
	return err
}

// takeMemory asks for so many bytes of its own, and does not use them.
func takeMemory(what string) error {
	size, err := strconv.Atoi(what)
	if err != nil {
		return err
	}
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	return unix.Munmap(data)
}

// changeOpen changes a file that it has open for reading.
func changeOpen(name, what string) error {
	fd, err := unix.Open(what, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch name {
	case "fchown":
		return unix.Fchown(fd, os.Getuid(), os.Getgid())
	case "futime":
		return unix.Futimes(fd, []unix.Timeval{{Sec: 1}, {Sec: 1}})
	}
	return unix.Fchmod(fd, 0o777)
}

// makeWithMode makes a file that runs as its owner, "call:path".
func makeWithMode(what string) error {
	const mode = unix.S_ISUID | unix.S_ISGID | 0o755
	call, path, _ := strings.Cut(what, ":")
	var fd int
	var err error
	switch call {
	case "openat":
		fd, err = unix.Openat(unix.AT_FDCWD, path, unix.O_CREAT|unix.O_WRONLY, mode)
	case "openat2":
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: mode})
	case "tmpfile":
		if fd, err = unix.Open(".", unix.O_TMPFILE|unix.O_WRONLY, mode); err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	case "mknodat":
		return unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFREG|mode, 0)
	default: // one that changes what is there
		if fd, err = unix.Openat(unix.AT_FDCWD, path, unix.O_CREAT|unix.O_RDWR, 0o755); err != nil {
			return err
		}
		defer unix.Close(fd)
		return changeMode(call, fd, path, mode)
	}
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func changeMode(call string, fd int, path string, mode uint32) error {
	switch call {
	case "fchmod":
		return unix.Fchmod(fd, mode)
	case "fchmodat":
		return unix.Fchmodat(unix.AT_FDCWD, path, mode, 0)
	case "fchmodat2":
		p, err := unix.BytePtrFromString(path)
		if err != nil {
			return err
		}
		at := unix.AT_FDCWD
		if _, _, errno := unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(mode), 0, 0, 0); errno != 0 {
			return errno
		}
		return nil
	}
	return fmt.Errorf("unknown way %q to change a mode", call)
}

// bigFile writes "path:bytes" and says how far it came.
func bigFile(what string) error {
	path, size, _ := strings.Cut(what, ":")
	want, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	// Written past the limit a file raises SIGXFSZ; ignored, the write fails.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	chunk := make([]byte, 1<<16)
	for n := 0; n < want; n += len(chunk) {
		if _, err := f.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// daemon leaves a process of another session behind that holds a lock on a
// file for as long as it lives. Through an inherited pipe it waits until the
// lock is held.
func daemon(lock string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{CanaryName, "lock-and-stay=" + lock}, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{null, null, null, w}, Sys: &unix.SysProcAttr{Setsid: true},
	})
	w.Close()
	if err != nil {
		return err
	}
	if err := p.Release(); err != nil {
		return err
	}
	if n, _ := r.Read(make([]byte, 1)); n != 1 {
		return errors.New("the daemon did not come up")
	}
	return nil
}

func lockAndStay(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	fmt.Fprint(f, os.Getpid())
	unix.Write(3, []byte{1})
	unix.Close(3)
	for {
		unix.Pause()
	}
}
