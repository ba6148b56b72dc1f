package auth

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
)

// TestOpenBehindAClosedFolder: where it is the folder that lets nobody in,
// removing the file is no advice, and no rule has refused anything.
func TestOpenBehindAClosedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	testkit.OK(t, os.Mkdir(dir, 0o700))
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	testkit.OK(t, os.Chmod(dir, 0))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if os.Geteuid() == 0 { // root may look anywhere: for files, this thread is somebody else
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for up := filepath.Dir(dir); strings.HasPrefix(up, os.TempDir()+"/"); up = filepath.Dir(up) {
			testkit.OK(t, os.Chmod(up, 0o755))
		}
		testkit.OK(t, syscall.Setfsuid(65534))
		defer syscall.Setfsuid(0)
	}
	_, err := Open(dir)
	if capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "permission denied for folder "+dir) || !strings.Contains(err.Error(), "chmod 700") || strings.Contains(err.Error(), "remove") {
		t.Errorf("Open() = %v, want that the folder is closed, and how to open it", err)
	}
}
