//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/wholefile"
)

// TestLockLeft: whoever meets the lock of one that died is told which file to
// delete.
func TestLockLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	testkit.OK(t, os.WriteFile(path, nil, 0o600))
	if _, err := wholefile.Lock(path, 0); !errors.Is(err, wholefile.ErrHeld) || !strings.Contains(err.Error(), "delete "+path) {
		t.Errorf("Lock = %v, want ErrHeld and what to delete", err)
	}
}

// TestLockDenied: a folder that may not be written is not taken for a lock that
// others hold.
func TestLockDenied(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.Chmod(dir, 0o500))
	if err := os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600); err == nil {
		t.Skip("cannot here: this user may write everywhere")
	}
	// It is told at once: to wait for a lock that nobody holds would be forever.
	if _, err := wholefile.Lock(filepath.Join(dir, "lock"), 24*time.Hour); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Lock = %v, want ErrPermission", err)
	}
}
