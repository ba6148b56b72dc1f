//go:build !linux

package cli

// unload does nothing where the system does not say what is loaded.
func unload() {}
