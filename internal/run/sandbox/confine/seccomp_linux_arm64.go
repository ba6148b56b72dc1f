package confine

import "golang.org/x/sys/unix"

const (
	auditArch     = unix.AUDIT_ARCH_AARCH64
	x32Bit        = 0
	seccompServed = true
)

var archAdminCalls []uintptr

var archRefusedCalls = []uintptr{unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE}

var archSharedCalls = []uintptr{unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP}

var (
	archOpens     []uintptr
	archModeCalls []modeCall
)

var archBrokered []uintptr

func archWanted(*broker, *notification) (wish, error) { return wish{}, unix.ENOSYS }
