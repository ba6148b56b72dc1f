package link

import (
	"io"
	"os"
	"syscall"
)

// wholeWrite is how many bytes a pipe takes as a whole or not at all (PIPE_BUF).
const wholeWrite = 4096

// directPipe returns a way to write to a pipe without waiting, or nil if w is none.
func directPipe(w io.Writer) syscall.RawConn {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return conn
}

// writeWhole writes at most wholeWrite bytes if the pipe takes them now. It reports
// false if it has written nothing.
func writeWhole(to syscall.RawConn, data []byte) (written bool) {
	err := to.Write(func(fd uintptr) bool {
		n, err := syscall.Write(int(fd), data)
		written = err == nil && n == len(data)
		return true
	})
	return err == nil && written
}
