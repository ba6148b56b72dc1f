//go:build linux && !amd64 && !arm64

package confine

// No filter is written for this architecture: reported as missing.
const (
	auditArch     = 0
	x32Bit        = 0
	seccompServed = false
)

var archRefusedCalls []uintptr
