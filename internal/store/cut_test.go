package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestEmptyFile: an empty file is not treated as a new store: it was truncated,
// and its contents are lost.
func TestEmptyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ken.db")
	testkit.OK(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(t.Context(), file, "")
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "backup") {
		t.Errorf("Open of an empty file = %v, want ErrDamaged and what to do", err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 0 {
		t.Errorf("the file was changed: %v", err)
	}
	testkit.OK(t, os.Remove(file))
	s, err := Open(t.Context(), file, "")
	if err != nil {
		t.Fatalf("Open without a file = %v", err)
	}
	s.Close()
}

// TestCutFile: a file that is truncated while it is open accepts no more
// writes, and the check reports it.
func TestCutFile(t *testing.T) {
	for _, left := range []int64{0, 1000} {
		file := filepath.Join(t.TempDir(), "ken.db")
		s := testkit.Must(Open(t.Context(), file, ""))(t)
		defer s.Close()
		put := func() error {
			var b Batch
			b.Put("a/b", []byte("x"))
			_, err := s.Apply(t.Context(), &b)
			return err
		}
		testkit.OK(t, put())
		testkit.OK(t, os.Truncate(file, left))
		for range 3 {
			if err := put(); !errors.Is(err, ErrDamaged) {
				t.Errorf("Apply to a file cut to %d bytes = %v, want ErrDamaged", left, err)
			}
		}
		if err := s.Check(t.Context()); !errors.Is(err, ErrDamaged) {
			t.Errorf("Check of a file cut to %d bytes = %v, want ErrDamaged", left, err)
		}
	}
}
