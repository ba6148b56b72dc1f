package shim

import (
	"os"
	"strconv"
	"syscall"
)

// keepDescriptors has no child inherit what we were given beyond stdio: a
// client's other pipes would stay open for as long as the daemon runs.
func keepDescriptors() {
	const (
		closeRange = 436 // where the number differs the loop below does it
		onExec     = 4
	)
	if _, _, errno := syscall.Syscall(closeRange, 3, ^uintptr(0)>>1, onExec); errno == 0 {
		return
	}
	// A system before 5.11.
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what there is
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
