//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// names returns how many names a file has.
func names(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// keepOwner sets the owner of a file to that of the file it replaces. Only root
// can; for other users the owner is the same already or cannot be kept.
func keepOwner(f *os.File, was fs.FileInfo) {
	if st, ok := was.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		f.Chown(int(st.Uid), int(st.Gid)) // best effort
	}
}
