//go:build !linux

package cli

// dropCodePages does nothing where the system does not say what is loaded.
func dropCodePages() {}
