//go:build linux && !amd64 && !arm64

package confine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// vfork is a plain fork on other platforms.
//
//go:norace
//go:nosplit
func vfork() uintptr {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -uintptr(errno)
	}
	return pid
}
