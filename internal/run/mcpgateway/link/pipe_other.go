//go:build !linux

package link

import (
	"io"
	"syscall"
)

const wholeWrite = 0

// directPipe returns nil: messages are written by a goroutine of their own.
func directPipe(io.Writer) syscall.RawConn { return nil }

func writeWhole(syscall.RawConn, []byte) bool { return false }
