//go:build linux || darwin

package store

import (
	"os"
	"syscall"
)

// Room says that the disk on which something lies is full, of bytes or of files,
// or read-only; nil where it is neither, or where that cannot be told.
func Room(path string) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(path, &disk); err != nil || disk.Blocks == 0 {
		return nil
	}
	const readOnly = 1 // the same on all of these systems
	free := disk.Bavail
	if os.Geteuid() == 0 {
		free = disk.Bfree // some of it is kept for this user
	}
	switch {
	case disk.Flags&readOnly != 0:
		return cause(ErrReadOnly, syscall.EROFS, "mount its disk for writing, or name another place")
	case free < (leastRoom+uint64(disk.Bsize)-1)/uint64(disk.Bsize):
		return cause(ErrFull, syscall.ENOSPC, "make room on the disk, then try again")
	case disk.Files > 0 && disk.Ffree == 0: // without a count of files there is no end to them
		return cause(ErrFull, syscall.ENOSPC, "the disk has no file left to give: remove some there, then try again")
	}
	return nil
}
