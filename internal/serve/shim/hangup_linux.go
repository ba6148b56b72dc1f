package shim

import (
	"syscall"
	"unsafe"
)

// hungUp waits until nobody can read what is written to a pipe or a socket,
// and reports whether it can tell.
func hungUp(fd int) bool {
	for {
		p := struct {
			fd              int32
			events, revents int16
		}{fd: int32(fd)} // errors and hang-ups are told unasked
		n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, 0, 0, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		return errno == 0 && n == 1
	}
}
