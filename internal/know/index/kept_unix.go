//go:build linux || darwin

package index

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file into memory, to be read only. Nil: it cannot.
func mapFile(f *os.File, size int) []byte {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	return data
}

func unmap(data []byte) { _ = unix.Munmap(data) } // it may stay as well

func restMapped(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) } // so may its pages
