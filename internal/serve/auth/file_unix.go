//go:build unix

package auth

import (
	"io/fs"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK // nor wait for a pipe

func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func othersRead(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
