package confine

import "golang.org/x/sys/unix"

// asOwner are the bits of a mode that let a user who runs a file act as its owner
// or its group. The owner of what a tool makes is the person who runs Ken, and
// that may be root.
const asOwner = unix.S_ISUID | unix.S_ISGID

// makesFile are the flags of open with which its mode counts.
const makesFile = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// A modeCall is a call that takes a mode, and which argument that is.
type modeCall struct {
	nr   uintptr
	mode int
}

// modeCalls exist on every architecture served.
var modeCalls = []modeCall{
	{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2},
	{unix.SYS_MKDIRAT, 2}, {unix.SYS_MKNODAT, 2},
}

// modes refuses every way to give a file one of the bits. openat2 has its
// mode in memory, where no filter can look: it does not exist.
func (f *filter) modes(bits uint32) {
	f.on(unix.SYS_OPENAT, openRule(2, bits))
	for _, nr := range archOpens {
		f.on(nr, openRule(1, bits))
	}
	for _, c := range modeCalls {
		f.on(c.nr, refuseBits(c.mode, bits))
	}
	for _, c := range archModeCalls {
		f.on(c.nr, refuseBits(c.mode, bits))
	}
	f.on(unix.SYS_OPENAT2, verdict(retENOSYS))
}

// openRule looks at the mode, which follows the flags, of what is to be made.
func openRule(flags int, bits uint32) filter {
	return filter{
		{Code: bpfLoad, K: arg(flags)},
		{Code: bpfAnySet, K: makesFile, Jt: 0, Jf: 2},
		{Code: bpfLoad, K: arg(flags + 1)},
		{Code: bpfAnySet, K: bits, Jt: 1, Jf: 0},
		{Code: bpfReturn, K: retAllow},
		{Code: bpfReturn, K: retEPERM},
	}
}

// shared refuses what reaches the host's own from a tool that is not in
// namespaces: memory and queues that processes share by name, the priorities
// and limits of processes of the same user, and extended attributes of files,
// which Landlock lets be changed. Programs that copy attributes do without
// where a file system has none.
func (f *filter) shared() {
	f.onAny(retEPERM, sharedCalls, archSharedCalls)
	f.onAny(retEOPNOTSUPP, attributeCalls)
	for _, nr := range ownOnlyCalls {
		f.on(nr, onlyZero(0))
	}
	f.on(unix.SYS_SETPRIORITY, onlyOwn(unix.PRIO_PROCESS))
	f.on(unix.SYS_IOPRIO_SET, onlyOwn(ioprioProcess))
}

const (
	retEOPNOTSUPP = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	ioprioProcess = 1
)

// sharedCalls are System V's memory, queues and semaphores, and POSIX queues.
var sharedCalls = []uintptr{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMCTL,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

var attributeCalls = []uintptr{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	unix.SYS_FILE_SETATTR,
}

// ownOnlyCalls take a process first, 0 for the one that calls.
var ownOnlyCalls = []uintptr{
	unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER,
	unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR,
}

// onlyZero allows a call only with 0 as an argument.
func onlyZero(i int) filter {
	return filter{
		{Code: bpfLoad, K: arg(i)},
		{Code: bpfEqual, K: 0, Jt: 1, Jf: 0},
		{Code: bpfReturn, K: retEPERM},
		{Code: bpfReturn, K: retAllow},
	}
}

// onlyOwn allows a call that names a kind of thing and which only for the one
// that calls.
func onlyOwn(kind uint32) filter {
	return append(filter{
		{Code: bpfLoad, K: arg(0)},
		{Code: bpfEqual, K: kind, Jt: 1, Jf: 0},
		{Code: bpfReturn, K: retEPERM},
	}, onlyZero(1)...)
}
