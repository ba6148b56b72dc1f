//go:build !linux

package sandbox

// Shield does nothing here: only Linux has it.
func Shield() error { return nil }
