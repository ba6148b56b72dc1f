package shim

import (
	"io"
	"os"
	"strconv"
	"syscall"
)

// Input returns standard input in a form that is waited for without a thread, and
// whose Close ends a read. A thread that waits in a read keeps its place in the Go
// runtime, which then wakes up every few microseconds to look after it. Only a pipe can
// be opened a second time; other programs that have the same input do not notice.
func Input(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return in
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return in
	}
	var again *os.File
	controlled := raw.Control(func(fd uintptr) {
		again, err = os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(fd)), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
	if controlled != nil || err != nil {
		return in
	}
	return again
}
