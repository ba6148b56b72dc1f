//go:build unix

package store

import (
	"errors"
	"net"
	"syscall"
)

// silent reports whether a connection is open as far as this machine knows, and has
// nothing to read. It sends nothing, so it does not notice a server that vanished
// without closing the connection.
func silent(c net.Conn) bool {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapped.NetConn()
	}
	sys, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	// Not raw.Read: that waits for a read of the driver's, which may wait for the server.
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && quiet
}
