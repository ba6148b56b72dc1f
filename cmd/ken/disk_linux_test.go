package main_test

import (
	"syscall"
	"testing"

	"ken/internal/testkit/scripttest"
)

// smallDisk makes an empty folder a disk of its own. It returns nil where that cannot be.
func smallDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	if !scripttest.CanMount() {
		return nil
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	free = func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }
	t.Cleanup(free)
	return free
}
