package store_test

import (
	"fmt"
	"testing"

	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// TestGetAll: several keys are read at once, and those that are gone are left out.
// A key that was removed can be made again, and has a newer version.
func TestGetAll(t *testing.T) { getAll(t, storetest.SQLite(t)) }

func TestGetAllPostgres(t *testing.T) { getAll(t, storetest.Postgres(t)) }

func getAll(t *testing.T, address string) {
	s := storetest.Open(t, address)
	ctx := t.Context()
	apply := func(f func(*store.Batch)) {
		t.Helper()
		var b store.Batch
		f(&b)
		if _, err := s.Apply(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
	keys := []string{"a/absent"}
	apply(func(b *store.Batch) {
		for i := range 5 {
			key := fmt.Sprint("a/", i)
			keys = append(keys, key)
			b.Put(key, []byte(key))
		}
	})
	apply(func(b *store.Batch) { b.Delete("a/1"); b.Remove("a/2"); b.Remove("a/none") })
	read := func() map[string]store.Item {
		t.Helper()
		got, err := s.GetAll(ctx, keys...)
		if err != nil {
			t.Fatal(err)
		}
		for key, item := range got {
			if string(item.Value) != key || item.Key != key {
				t.Errorf("%s is %+v", key, item)
			}
		}
		return got
	}
	got := read()
	if len(got) != 3 || got["a/0"].Version == 0 || got["a/3"].Version == 0 || got["a/4"].Version == 0 {
		t.Fatalf("GetAll() = %v, want a/0, a/3 and a/4", got)
	}
	before := got["a/0"].Version
	apply(func(b *store.Batch) { b.Absent("a/2"); b.Put("a/2", []byte("a/2")) })
	if again := read()["a/2"]; again.Version <= before {
		t.Errorf("a/2 was made again with version %d, want one after %d", again.Version, before)
	}
	if items, err := s.GetAll(ctx); len(items) != 0 || err != nil {
		t.Errorf("GetAll() = %v, %v", items, err)
	}
	if _, err := s.GetAll(ctx, ""); err == nil {
		t.Error("GetAll() of an empty key succeeded")
	}
}
