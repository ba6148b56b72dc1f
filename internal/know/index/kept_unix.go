//go:build linux || darwin

package index

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// mapFile maps a file into memory, to be read only. Nil: it cannot.
func mapFile(f *os.File, size int) *mapping {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	m := &mapping{data: data}
	runtime.AddCleanup(m, func(data []byte) { _ = unix.Munmap(data) }, data)
	return m
}

func (m *mapping) rest() { _ = unix.Madvise(m.data, unix.MADV_DONTNEED) } // they may stay as well
