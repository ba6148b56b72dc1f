package shim

import "syscall"

// keepDescriptors has no child inherit what we were given beyond stdio.
func keepDescriptors() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}
