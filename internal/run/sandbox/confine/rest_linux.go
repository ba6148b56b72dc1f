package confine

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// restAfter is how long a helper is idle before it drops what it needed to start.
const restAfter = time.Second

// rest waits until there is something to read on the control socket. When that
// takes longer than [restAfter], it drops the pages of the program meanwhile.
func rest() {
	wait := []unix.PollFd{{Fd: ControlFD, Events: unix.POLLIN}}
	if n, err := unix.Poll(wait, int(restAfter/time.Millisecond)); n == 0 && err == nil {
		dropCodePages()
	}
}

// dropCodePages drops the read-only pages of the program from the memory of this
// process. A helper needs most of them only at its start; the system's cache
// supplies the others again. The addresses come from the kernel's auxiliary
// vector, since /proc/self/maps cannot be read in a process that is not dumpable.
func dropCodePages() {
	auxv, err := unix.Auxv()
	if err != nil {
		return
	}
	var table, size, count uintptr
	for _, entry := range auxv {
		switch entry[0] {
		case auxHeaders:
			table = entry[1]
		case auxHeaderSize:
			size = entry[1]
		case auxHeaderCount:
			count = entry[1]
		}
	}
	if table == 0 || size != unsafe.Sizeof(programHeader{}) {
		return
	}
	// The kernel mapped the table with the program. It stays where it is.
	headers := unsafe.Slice((*programHeader)(*(*unsafe.Pointer)(unsafe.Pointer(&table))), count)
	var base uintptr // 0, but in a program that can be anywhere
	for _, h := range headers {
		if h.kind == segmentTable {
			base = table - h.address
		}
	}
	page := uintptr(unix.Getpagesize())
	for _, h := range headers {
		if h.kind != segmentLoad || h.flags&segmentWritable != 0 {
			continue // what is written to has no copy
		}
		// Only whole pages: what shares one may be written to.
		start := (base + h.address + page - 1) &^ (page - 1)
		end := (base + h.address + h.fileSize) &^ (page - 1)
		if end > start {
			unix.RawSyscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED)
		}
	}
}

// A programHeader is the ELF header of a segment on a machine of 64 bits.
type programHeader struct {
	kind, flags        uint32
	_, address, _      uintptr
	fileSize, inMemory uintptr
	_                  uintptr
}

const (
	auxHeaders      = 3 // AT_PHDR
	auxHeaderSize   = 4 // AT_PHENT
	auxHeaderCount  = 5 // AT_PHNUM
	segmentLoad     = 1 // PT_LOAD
	segmentTable    = 6 // PT_PHDR
	segmentWritable = 2 // PF_W
)
