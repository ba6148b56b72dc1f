package confine

import "golang.org/x/sys/unix"

// A filter is classic BPF over the kernel's seccomp_data: the number at 0, the
// architecture at 4, the arguments from 16, eight bytes each, low half first
// on the little-endian machines served here.
type filter []unix.SockFilter

const (
	bpfLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfAnySet  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	bpfReturn  = unix.BPF_RET | unix.BPF_K

	offNr   = 0
	offArch = 4
	offArg0 = 16
	offArg1 = 24
	offArg2 = 32

	retAllow = unix.SECCOMP_RET_ALLOW
	retKill  = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// A C library that is told a call does not exist falls back to an older
	// one whose arguments we can see.
	retENOSYS = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// newNamespaces are the flags of clone that make a namespace. CLONE_NEWTIME
// cannot be given to clone.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

func (f *filter) op(code uint16, k uint32, jt, jf uint8) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

// on adds a body that is entered when the number is nr, and must return.
func (f *filter) on(nr uintptr, body filter) {
	f.op(bpfEqual, uint32(nr), 0, uint8(len(body)))
	*f = append(*f, body...)
}

func verdict(v uint32) filter { return filter{{Code: bpfReturn, K: v}} }

// seccompFilter refuses what no tool needs and what kernels were broken by:
// looking into other processes, namespaces and mounts, kernel modules, keys,
// io_uring, bpf, clocks. Sockets are refused too, but for pairs, and with
// network for IP, which then lives in a network of its own. It is a list of
// what is refused, so that ordinary tools work; it stands behind the other
// layers and is not a boundary by itself.
func seccompFilter(network bool) filter {
	var f filter
	f.op(bpfLoad, offArch, 0, 0)
	f.op(bpfEqual, auditArch, 1, 0)
	f.op(bpfReturn, retKill, 0, 0)
	f.op(bpfLoad, offNr, 0, 0)
	if x32Bit != 0 {
		f.op(bpfAtLeast, x32Bit, 0, 1)
		f.op(bpfReturn, retKill, 0, 0)
	}
	for _, nr := range refusedCalls {
		f.on(nr, verdict(retEPERM))
	}
	for _, nr := range archRefusedCalls {
		f.on(nr, verdict(retEPERM))
	}
	f.on(unix.SYS_CLONE3, verdict(retENOSYS))
	f.on(unix.SYS_CLONE, filter{
		{Code: bpfLoad, K: offArg0},
		{Code: bpfAnySet, K: newNamespaces, Jt: 0, Jf: 1},
		{Code: bpfReturn, K: retEPERM},
		{Code: bpfReturn, K: retAllow},
	})
	// Pushing characters into the terminal we were started from.
	f.on(unix.SYS_IOCTL, filter{
		{Code: bpfLoad, K: offArg1},
		{Code: bpfEqual, K: unix.TIOCSTI, Jt: 1, Jf: 0},
		{Code: bpfEqual, K: tiocLinux, Jt: 0, Jf: 1},
		{Code: bpfReturn, K: retEPERM},
		{Code: bpfReturn, K: retAllow},
	})
	f.on(unix.SYS_SOCKET, socketRule(network))
	f.op(bpfReturn, retAllow, 0, 0)
	return f
}

const tiocLinux = 0x541C

// socketRule allows no family without network; with it IP and the routing
// questions a resolver asks. Unix sockets are never made: through a path they
// reach daemons that act for whoever asks.
func socketRule(network bool) filter {
	if !network {
		return verdict(retEPERM)
	}
	return filter{
		{Code: bpfLoad, K: offArg0},
		{Code: bpfEqual, K: unix.AF_INET, Jt: 4, Jf: 0},
		{Code: bpfEqual, K: unix.AF_INET6, Jt: 3, Jf: 0},
		{Code: bpfEqual, K: unix.AF_NETLINK, Jt: 0, Jf: 3},
		{Code: bpfLoad, K: offArg2},
		{Code: bpfEqual, K: unix.NETLINK_ROUTE, Jt: 0, Jf: 1},
		{Code: bpfReturn, K: retAllow},
		{Code: bpfReturn, K: retEPERM},
	}
}

// refusedCalls exist on every architecture served.
var refusedCalls = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, 467, // open_tree_attr
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
}
