package embed

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// GiveBack tells the kernel that a text inside the program's file is not needed
// in memory for now. Who reads it later reads it from the file, whose pages the
// kernel usually still has. A text that is anywhere else stays as it is.
func GiveBack(text string) {
	page := os.Getpagesize()
	first := unsafe.StringData(text)
	skip := -int(uintptr(unsafe.Pointer(first))) & (page - 1) // to the first whole page
	n := (len(text) - skip) &^ (page - 1)
	if n <= 0 {
		return
	}
	pages := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(first), skip)), n)
	if ofFile(uintptr(unsafe.Pointer(&pages[0])), uintptr(n)) {
		_ = unix.Madvise(pages, unix.MADV_DONTNEED) // they may stay as well
	}
}

// ofFile reports whether n bytes of memory are a part of a file that cannot be
// written to: of those, the kernel can find the content again.
func ofFile(from, n uintptr) bool {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(maps)) {
		var low, high, offset uintptr
		var rights, device string
		var inode uint64
		if _, err := fmt.Sscanf(line, "%x-%x %s %x %s %d", &low, &high, &rights, &offset, &device, &inode); err == nil && low <= from && from+n <= high {
			return rights == "r--p" && inode != 0
		}
	}
	return false
}
