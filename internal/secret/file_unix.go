//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package secret

import (
	"io/fs"
	"os"
	"syscall"
)

// fileID tells a replaced file from the one before, whatever the clock says.
func fileID(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// ofSystem reports whether root owns a file and we are not root.
func ofSystem(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0 && os.Getuid() != 0
}
