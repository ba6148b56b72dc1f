//go:build unix

package config

import "syscall"

// makePipe makes a named pipe.
func makePipe(name string) error { return syscall.Mkfifo(name, 0o644) }
