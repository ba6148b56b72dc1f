//go:build unix

package audit

import "syscall"

// limitFileSize makes writes past n bytes of a file fail in this process.
func limitFileSize(n uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}
