//go:build !linux

package daemon

// NotOwn refuses nobody where parents are not told.
func NotOwn(int) error { return nil }
