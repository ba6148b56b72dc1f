//go:build !linux

package vectors

// lowPriority is for systems where threads have no priority of their own.
func lowPriority() {}
