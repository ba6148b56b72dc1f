//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

func diskSize(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512
	}
	return info.Size()
}
