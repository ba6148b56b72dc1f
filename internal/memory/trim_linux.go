package memory

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropCodePages drops the pages of this program's file from memory, and those of files
// that are mapped to be read. Most were needed only at the start; the system's cache
// supplies the others again when they are used.
func dropCodePages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		code := len(words) >= 6 && words[5] == exe && (words[1] == "r--p" || words[1] == "r-xp")
		if shared := len(words) >= 6 && words[1] == "r--s" && words[4] != "0"; !code && !shared {
			continue // what is written to has no copy
		}
		from, to, _ := strings.Cut(words[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			continue
		}
		end, err := strconv.ParseUint(to, 16, 64)
		if err != nil || end <= start {
			continue
		}
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(end-start), syscall.MADV_DONTNEED)
	}
}
