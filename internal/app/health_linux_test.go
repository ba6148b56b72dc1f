package app

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ken/internal/store"
)

// TestRecordableRoom: a full disk of the checkpoints is found, though the record
// lies on another, and so is a disk that can hold no more files.
func TestRecordableRoom(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=2m,nr_inodes=64"); err != nil {
		t.Skipf("cannot here: mount of a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	_, getenv := home(t, map[string]string{".ken/ken.yaml": "audit: {checkpointDir: " + filepath.Join(small, "heads") + "}\n"})
	a := open(t, Config{Getenv: getenv})
	ballast := filepath.Join(small, "ballast")
	for _, tt := range []struct {
		name string
		fill func() error
	}{
		{"bytes", func() error { return os.WriteFile(ballast, make([]byte, 4<<20), 0o600) }},
		{"files", func() (err error) {
			if err := os.Mkdir(ballast, 0o700); err != nil {
				return err
			}
			for i := 0; err == nil && i < 100; i++ {
				var f *os.File
				if f, err = os.CreateTemp(ballast, ""); err == nil {
					f.Close()
				}
			}
			return err
		}},
	} {
		if err := a.recordable(); err != nil {
			t.Fatalf("%s: recordable() = %v with room, want none", tt.name, err)
		}
		if err := tt.fill(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: fill = %v, want a full disk", tt.name, err)
		}
		if err := a.recordable(); !errors.Is(err, store.ErrFull) {
			t.Errorf("%s: recordable() = %v of a full disk, want %v", tt.name, err, store.ErrFull)
		}
		if err := os.RemoveAll(ballast); err != nil {
			t.Fatal(err)
		}
		if err := a.recordable(); err != nil {
			t.Errorf("%s: recordable() = %v with room again, want none", tt.name, err)
		}
	}
}
