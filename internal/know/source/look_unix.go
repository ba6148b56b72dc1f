//go:build unix && !linux

package source

import (
	"io/fs"
	"syscall"
)

// identity returns what tells a file from another that took its name. When its
// metadata changed is spelled differently by every system and left out.
func identity(info fs.FileInfo) (inode, changed uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(st.Ino), 0
}
