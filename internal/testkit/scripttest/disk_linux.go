package scripttest

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// CanMount says whether a script may have a disk of its own, which root has in
// most places.
func CanMount() bool {
	dir, err := os.MkdirTemp("", "ken-disk-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k") != nil {
		return false
	}
	return syscall.Unmount(dir, syscall.MNT_DETACH) == nil
}

// disk FOLDER BYTES: makes the folder a disk of that size, for this script.
func disk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: disk FOLDER BYTES")
	}
	_, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+args[1]))
	ts.Defer(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fill FILE: writes the file until its disk has no room.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill FILE")
	}
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	const most = 1 << 10 // a disk of a gigabyte is none of ours
	block := make([]byte, 1<<20)
	for range most {
		if _, err = f.Write(block); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		ts.Fatalf("the disk of %s does not get full: %v", args[0], err)
	}
}
