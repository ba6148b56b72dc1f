package store_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"ken/internal/store"
	"ken/internal/testkit"
)

// TestSnapshot checks that a copy is a store with what was there, and that the
// original goes on.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := testkit.Must(store.Open(ctx, "", t.TempDir()))(t)
	defer s.Close()
	put := func(key string) {
		t.Helper()
		b := new(store.Batch)
		b.Put(key, []byte(key))
		testkit.Must(s.Apply(ctx, b))(t)
	}
	for i := range 100 {
		put(fmt.Sprintf("before/%d", i))
	}
	dir := t.TempDir()
	testkit.OK(t, s.Snapshot(ctx, filepath.Join(dir, "ken.db")))
	put("after")
	if err := s.Snapshot(ctx, filepath.Join(dir, "ken.db")); err == nil {
		t.Error("a second copy replaced the first")
	}
	c := testkit.Must(store.Open(ctx, "", dir))(t)
	defer c.Close()
	if item, ok, err := c.Get(ctx, "before/99"); err != nil || !ok || string(item.Value) != "before/99" {
		t.Errorf("the copy has %q, %v, %v", item.Value, ok, err)
	}
	if _, ok, err := c.Get(ctx, "after"); err != nil || ok {
		t.Errorf("the copy has what came later: %v, %v", ok, err)
	}
}
