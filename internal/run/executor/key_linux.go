package executor

import (
	"io/fs"
	"syscall"
)

func keyOf(info fs.FileInfo) fileKey {
	k := fileKey{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		k.dev, k.ino, k.changed = uint64(st.Dev), uint64(st.Ino), st.Ctim.Nano()
	}
	return k
}
