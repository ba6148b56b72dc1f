package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"ken/internal/store"
)

// TestSnapshot checks that a copy is a store with what was there, and that the
// original goes on.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := store.Open(ctx, "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(key string) {
		t.Helper()
		b := new(store.Batch)
		b.Put(key, []byte(key))
		if _, err := s.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		put(fmt.Sprintf("before/%d", i))
	}
	dir := t.TempDir()
	if err := s.Snapshot(ctx, filepath.Join(dir, "ken.db")); err != nil {
		t.Fatal(err)
	}
	put("after")
	if err := s.Snapshot(ctx, filepath.Join(dir, "ken.db")); err == nil {
		t.Error("a second copy replaced the first")
	}
	c, err := store.Open(ctx, "", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if item, ok, err := c.Get(ctx, "before/99"); err != nil || !ok || string(item.Value) != "before/99" {
		t.Errorf("the copy has %q, %v, %v", item.Value, ok, err)
	}
	if _, ok, err := c.Get(ctx, "after"); err != nil || ok {
		t.Errorf("the copy has what came later: %v, %v", ok, err)
	}
}
