//go:build !linux

package db

import "os"

// self is this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// limitMemory does nothing: only Linux counts what a process maps.
func limitMemory(uint64) {}
