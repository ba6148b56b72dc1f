package source

import (
	"io/fs"
	"syscall"
)

// identity returns what tells a file from another that took its name, and when
// its metadata last changed.
func identity(info fs.FileInfo) (inode, changed uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ino, uint64(st.Ctim.Nano())
}
