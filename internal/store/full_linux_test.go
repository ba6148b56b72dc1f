package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ken/internal/store"
	"ken/internal/testkit"
)

// disk returns a small file system of its own, which is gone with the test.
func disk(t *testing.T, flags uintptr, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("cannot here: mount of a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestSQLiteFullDisk fills a real file system, then makes room: what was refused
// is not there, what was taken is, and the store goes on by itself.
func TestSQLiteFullDisk(t *testing.T) {
	small := disk(t, 0, "size=2m")
	ballast := filepath.Join(small, "ballast")
	testkit.OK(t, os.WriteFile(ballast, make([]byte, 512<<10), 0o600))
	ctx := context.Background()
	s, err := store.Open(ctx, filepath.Join(small, "store.db"), small)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	put := func(key string) error { return put(s, key, make([]byte, 2000)) }
	taken := 0
	for ; taken < 2000; taken++ {
		if err = put(fmt.Sprintf("before/%04d", taken)); err != nil {
			break
		}
	}
	if !errors.Is(err, store.ErrFull) || taken < 10 {
		t.Fatalf("Apply() = %v after %d, want ErrFull after some", err, taken)
	}
	for range 3 {
		if err := put("refused"); !errors.Is(err, store.ErrFull) {
			t.Fatalf("Apply() = %v while full, want ErrFull", err)
		}
	}
	testkit.OK(t, os.Remove(ballast))
	for i := range 8 {
		if err := put(fmt.Sprintf("after/%04d", i)); err != nil {
			t.Fatalf("Apply() = %v with room again, want none", err)
		}
	}
	n := 0
	for item, err := range s.Scan(ctx, "", store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Key == "refused" {
			t.Error("what was refused is there")
		}
		n++
	}
	if n != taken+8 {
		t.Errorf("%d keys, want %d", n, taken+8)
	}
}

// TestSQLiteCheckFull: a full disk is found before a write meets it, and so is
// that there is room again.
func TestSQLiteCheckFull(t *testing.T) {
	small := disk(t, 0, "size=2m")
	ctx := context.Background()
	s := testkit.Must(store.Open(ctx, filepath.Join(small, "store.db"), small))(t)
	t.Cleanup(func() { s.Close() })
	check := func() error {
		store.Recheck(s)
		return s.Check(ctx)
	}
	if err := check(); err != nil {
		t.Fatalf("Check() = %v with room, want none", err)
	}
	ballast := filepath.Join(small, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	for range 2 { // before a write fails, and after
		if err := check(); !errors.Is(err, store.ErrFull) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Check() = %v, want %v", err, store.ErrFull)
		}
		if err := put(s, "k", make([]byte, 64<<10)); !errors.Is(err, store.ErrFull) {
			t.Errorf("Apply() = %v, want %v", err, store.ErrFull)
		}
	}
	testkit.OK(t, os.Remove(ballast))
	if err := check(); err != nil {
		t.Errorf("Check() = %v with room again, want none", err)
	}
	few := disk(t, 0, "size=2m,nr_inodes=3")
	if err := store.Room(few); err != nil {
		t.Errorf("Room() = %v of a disk that can hold files, want none", err)
	}
	var err error
	for i := range 3 { // its own folder is one
		err = os.WriteFile(filepath.Join(few, fmt.Sprint(i)), nil, 0o600)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := store.Room(few); !errors.Is(err, store.ErrFull) {
		t.Errorf("Room() = %v of a disk that holds as many files as it can, want %v", err, store.ErrFull)
	}
	shut := disk(t, syscall.MS_RDONLY, "size=2m")
	if err := store.Room(shut); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Room() = %v of a disk that is mounted read-only, want %v", err, store.ErrReadOnly)
	}
}
