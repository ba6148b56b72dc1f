package chat

import (
	"os"

	"golang.org/x/sys/unix"
)

// Flush throws away what was typed at a terminal and not read: an answer counts
// only if it was given after its question. What is no terminal is left alone.
func Flush(f *os.File) {
	_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // fails for what is no terminal
}
