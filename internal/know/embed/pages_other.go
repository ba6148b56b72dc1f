//go:build !linux

package embed

// GiveBack does nothing: only Linux is told which memory is not needed.
func GiveBack(string) {}
