//go:build unix

package executor

import "syscall"

// missing reports whether there is certainly no file of this name, or none that
// can be reached. It needs less memory than [os.Lstat]: it is asked for each word
// of a call's arguments.
func missing(path string) bool {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	return err != nil && err != syscall.EINTR
}
