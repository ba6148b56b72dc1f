package confine

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A filter is classic BPF over the kernel's seccomp_data: the number at 0, the
// architecture at 4, the arguments from 16, eight bytes each, low half first
// on the little-endian machines served here.
type filter []unix.SockFilter

const (
	bpfLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfAnySet  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	bpfJump    = unix.BPF_JMP | unix.BPF_JA
	bpfMask    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	bpfReturn  = unix.BPF_RET | unix.BPF_K

	offNr   = 0
	offArch = 4

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

// onAny answers all of the numbers alike. What the kernel takes to check a
// filter grows with its length, and every tool waits for that.
func (f *filter) onAny(v uint32, lists ...[]uintptr) {
	numbers := slices.Concat(lists...)
	for i, nr := range numbers {
		f.op(bpfEqual, uint32(nr), uint8(len(numbers)-i), 0)
	}
	f.op(bpfJump, 1, 0, 0)
	f.op(bpfReturn, v, 0, 0)
}

func verdict(v uint32) filter { return filter{{Code: bpfReturn, K: v}} }

// arg is where the low half of an argument lies.
func arg(i int) uint32 { return uint32(16 + 8*i) }

// begin refuses other architectures, whose numbers mean other calls, and loads
// the number of ours.
func (f *filter) begin() {
	f.op(bpfLoad, offArch, 0, 0)
	f.op(bpfEqual, auditArch, 1, 0)
	f.op(bpfReturn, retKill, 0, 0)
	f.op(bpfLoad, offNr, 0, 0)
	if x32Bit != 0 {
		f.op(bpfAtLeast, x32Bit, 0, 1)
		f.op(bpfReturn, retKill, 0, 0)
	}
}

// seccompFilter refuses what no tool needs and what kernels were broken by:
// looking into other processes, namespaces and mounts, kernel modules, keys,
// io_uring, bpf, clocks. Sockets are refused too, but for pairs, and with
// network for IP, which then lives in a network of its own, and with local for
// unix sockets. So is making
// anything that runs as its owner. Where a tool shares the host's processes
// and files, what would reach those is refused as well. It is a list of what
// is refused, so that ordinary tools work; it stands behind the other layers
// and is not a boundary by itself.
//
// Where memory is watched (no cgroup counts it), what the watch cannot see is
// refused: files without a name, which can be passed on without being open in any
// process, and hiding from inspection.
func seccompFilter(network, open, local, shared, watched bool) filter {
	var f filter
	f.begin()
	f.modes(asOwner) // first: a tool opens files more often than all else
	f.onAny(retEPERM, peekCalls, adminCalls, refusedCalls, archAdminCalls, archRefusedCalls)
	f.on(unix.SYS_CLONE3, verdict(retENOSYS))
	f.on(unix.SYS_CLONE, refuseBits(0, newNamespaces))
	// Pushing characters into the terminal we were started from.
	commands := []uint32{unix.TIOCSTI, tiocLinux}
	if shared {
		f.shared()
		commands = append(commands, fsSetFlags, fsSetFlags32, fsSetXattr)
	}
	f.on(unix.SYS_IOCTL, refuseValues(1, commands))
	if watched {
		f.on(unix.SYS_MEMFD_CREATE, verdict(retENOSYS))
		f.on(unix.SYS_MEMFD_SECRET, verdict(retENOSYS))
		f.on(unix.SYS_PRCTL, refuseValues(0, []uint32{unix.PR_SET_DUMPABLE}))
	}
	f.sockets(network, open, local)
	f.op(bpfReturn, retAllow, 0, 0)
	return f
}

// sockets lets sockets be made as far as there is a network; open is the
// host's. Local ones are unix sockets.
func (f *filter) sockets(network, open, local bool) {
	if open {
		f.on(unix.SYS_SOCKET, onlyValues(0, []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}))
		return
	}
	f.on(unix.SYS_SOCKET, socketRule(network, local))
	f.on(unix.SYS_SOCKETPAIR, pairRule())
}

// Commands of ioctl. Those of file systems change a file's attributes through
// any descriptor of it, also one for reading.
const (
	tiocLinux    = 0x541C
	fsSetFlags   = 0x40086602
	fsSetFlags32 = 0x40046602
	fsSetXattr   = 0x401c5820
)

// refuseBits refuses a call with any of the bits in an argument.
func refuseBits(i int, bits uint32) filter {
	return filter{
		{Code: bpfLoad, K: arg(i)},
		{Code: bpfAnySet, K: bits, Jt: 0, Jf: 1},
		{Code: bpfReturn, K: retEPERM},
		{Code: bpfReturn, K: retAllow},
	}
}

// refuseValues refuses a call with one of the values as an argument.
func refuseValues(i int, values []uint32) filter { return choose(i, values, retEPERM, retAllow) }

// onlyValues allows a call only with one of the values as an argument.
func onlyValues(i int, values []uint32) filter { return choose(i, values, retAllow, retEPERM) }

func choose(i int, values []uint32, among, other uint32) filter {
	f := filter{{Code: bpfLoad, K: arg(i)}}
	for n, v := range values {
		f.op(bpfEqual, v, uint8(len(values)-n), 0)
	}
	f.op(bpfReturn, other, 0, 0)
	f.op(bpfReturn, among, 0, 0)
	return f
}

// socketRule allows no family without network; with it IP and the routing
// questions a resolver asks. Unix sockets are made only where local is true:
// through a path they reach daemons that act for any caller, unless the tool has
// a root and a network of its own.
func socketRule(network, local bool) filter {
	if !network {
		if local {
			return onlyValues(0, []uint32{unix.AF_UNIX})
		}
		return verdict(retEPERM)
	}
	f := filter{
		{Code: bpfLoad, K: arg(0)},
		{Code: bpfEqual, K: unix.AF_INET, Jt: 4, Jf: 0},
		{Code: bpfEqual, K: unix.AF_INET6, Jt: 3, Jf: 0},
		{Code: bpfEqual, K: unix.AF_NETLINK, Jt: 0, Jf: 3},
		{Code: bpfLoad, K: arg(2)},
		{Code: bpfEqual, K: unix.NETLINK_ROUTE, Jt: 0, Jf: 1},
		{Code: bpfReturn, K: retAllow},
		{Code: bpfReturn, K: retEPERM},
	}
	if local {
		f = slices.Insert(f, 1, unix.SockFilter{Code: bpfEqual, K: unix.AF_UNIX, Jt: 5, Jf: 0})
	}
	return f
}

// pairRule allows pairs of unix sockets that stay with each other. Datagram
// sockets do not: one of a pair can be connected to a path, or write there.
func pairRule() filter {
	return filter{
		{Code: bpfLoad, K: arg(0)},
		{Code: bpfEqual, K: unix.AF_UNIX, Jt: 0, Jf: 5},
		{Code: bpfLoad, K: arg(1)},
		{Code: bpfMask, K: socketType},
		{Code: bpfEqual, K: unix.SOCK_STREAM, Jt: 1, Jf: 0},
		{Code: bpfEqual, K: unix.SOCK_SEQPACKET, Jt: 0, Jf: 1},
		{Code: bpfReturn, K: retAllow},
		{Code: bpfReturn, K: retEPERM},
	}
}

// socketType are the bits of a socket's type that are not flags.
const socketType = 0xf

// peekCalls reach into other processes.
var peekCalls = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
}

// adminCalls administer the kernel, or are ways into it that were broken often.
// All exist on every architecture served.
var adminCalls = []uintptr{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG,
	unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_VHANGUP,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// refusedCalls are what a tool is refused besides peekCalls and adminCalls. All
// exist on every architecture served.
var refusedCalls = []uintptr{
	unix.SYS_KCMP,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, 467, // open_tree_attr
	unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
}
