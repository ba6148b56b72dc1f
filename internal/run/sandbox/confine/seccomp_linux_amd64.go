package confine

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32Bit    = 0x40000000 // numbers from here on are the x32 ABI: other names for the same calls
	// seccompServed says that a filter exists for this architecture.
	seccompServed = true
)

// archAdminCalls reach hardware.
var archAdminCalls = []uintptr{unix.SYS_IOPL, unix.SYS_IOPERM}

var archRefusedCalls = []uintptr{
	unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT,
	unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
}

// Semaphores, which some machines have behind one call.
var archSharedCalls = []uintptr{unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP}

// Calls that take a path and no directory: newer machines have only the others.
var (
	archOpens     = []uintptr{unix.SYS_OPEN}
	archModeCalls = []modeCall{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKDIR, 1}, {unix.SYS_MKNOD, 1}}
)

var archBrokered = []uintptr{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

// archWanted reads a call that only this architecture has.
func archWanted(b *broker, n *notification) (w wish, err error) {
	a := n.argument
	w = wish{dir: unix.AT_FDCWD, path: a[0]}
	var t *[2]unix.Timespec
	switch n.nr {
	case unix.SYS_CHMOD:
		w.change = chmod(a[1])
	case unix.SYS_CHOWN:
		w.change = chown(a[1], a[2])
	case unix.SYS_LCHOWN:
		w.change, w.flags = chown(a[1], a[2]), unix.AT_SYMLINK_NOFOLLOW
	case unix.SYS_UTIME:
		t, err = b.seconds(n.pid, a[1])
		w.change = utimens(t)
	case unix.SYS_UTIMES:
		t, err = b.micros(n.pid, a[1])
		w.change = utimens(t)
	case unix.SYS_FUTIMESAT:
		w.dir, w.path = int(int32(a[0])), a[1]
		t, err = b.micros(n.pid, a[2])
		w.change = utimens(t)
	default:
		err = unix.ENOSYS
	}
	if w.path == 0 && n.nr != unix.SYS_FUTIMESAT {
		err = unix.EFAULT
	}
	return w, err
}

// micros reads two times of the caller's that count microseconds.
func (b *broker) micros(pid uint32, at uint64) (*[2]unix.Timespec, error) {
	t, err := b.times(pid, at)
	if t == nil || err != nil {
		return nil, err
	}
	for i := range t {
		if t[i].Nsec < 0 || t[i].Nsec >= 1e6 {
			return nil, unix.EINVAL
		}
		t[i].Nsec *= 1000
	}
	return t, nil
}

// seconds reads two whole seconds of the caller's; nil means now.
func (b *broker) seconds(pid uint32, at uint64) (*[2]unix.Timespec, error) {
	if at == 0 {
		return nil, nil
	}
	var s [16]byte
	if err := read(pid, at, s[:]); err != nil {
		return nil, err
	}
	return &[2]unix.Timespec{
		{Sec: int64(binary.LittleEndian.Uint64(s[:]))}, {Sec: int64(binary.LittleEndian.Uint64(s[8:]))},
	}, nil
}
