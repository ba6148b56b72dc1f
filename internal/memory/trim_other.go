//go:build !linux

package memory

// dropCodePages does nothing where the system does not say what is loaded.
func dropCodePages() {}
