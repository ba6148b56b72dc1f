//go:build !unix

package store

import "net"

// silent reports whether a connection is known to be open and to have nothing to read.
// It is not known here.
func silent(net.Conn) bool { return false }
