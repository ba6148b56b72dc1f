//go:build !linux

package daemon

// NotOwn refuses no one where parents are not told.
func NotOwn(int) error { return nil }
