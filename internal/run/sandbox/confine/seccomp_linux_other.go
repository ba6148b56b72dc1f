//go:build linux && !amd64 && !arm64

package confine

import "golang.org/x/sys/unix"

// No filter is written for this architecture: reported as missing.
const (
	auditArch     = 0
	x32Bit        = 0
	seccompServed = false
)

var archAdminCalls []uintptr

var archRefusedCalls []uintptr

var (
	archSharedCalls []uintptr
	archOpens       []uintptr
	archModeCalls   []modeCall
)

var archBrokered []uintptr

func archWanted(*broker, *notification) (wish, error) { return wish{}, unix.ENOSYS }
