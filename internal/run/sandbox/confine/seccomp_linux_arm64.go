package confine

import "golang.org/x/sys/unix"

const (
	auditArch     = unix.AUDIT_ARCH_AARCH64
	x32Bit        = 0
	seccompServed = true
)

var archRefusedCalls = []uintptr{unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE}
