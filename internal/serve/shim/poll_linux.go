package shim

import (
	"syscall"
	"unsafe"
)

// poll says what can be done; where wait is true it waits until something can.
func poll(fds []pollFd, wait bool) error {
	limit := &syscall.Timespec{}
	if wait {
		limit = nil
	}
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), uintptr(unsafe.Pointer(limit)), 0, 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return errno
		}
	}
}
