//go:build linux && (amd64 || arm64)

package confine

// vfork makes a child that shares our memory and our stack; we are suspended
// until it execs or exits. It returns twice, as fork does, with a negative
// errno where it fails.
//
//go:noescape
func vfork() uintptr
