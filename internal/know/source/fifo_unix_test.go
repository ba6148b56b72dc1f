//go:build unix

package source

import (
	"syscall"
	"testing"
)

func makeFIFO(_ *testing.T, at string) error { return syscall.Mkfifo(at, 0o644) }
