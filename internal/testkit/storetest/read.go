package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/internal/store"
)

// atMost: a batch passes only while few enough keys begin with a prefix, whichever
// process wrote them, and however many batches come at once.
func atMost(t *testing.T, a, b actor) {
	refused := func(x actor, n, have int64, steps ...step) {
		t.Helper()
		_, err := x.apply(append(steps, most("room/", n))...)
		var got *store.Conflict
		if !errors.As(err, &got) || *got != (store.Conflict{Key: "room/", Want: n, Have: have}) || !strings.Contains(err.Error(), "keys begin with room/") {
			t.Errorf("Apply with at most %d keys = %v, want a conflict with %d", n, err, have)
		}
	}
	mustApply(t, a, most("room/", 0), put("room/1", "x"))
	refused(b, 0, 1, put("room/2", "x"))
	mustApply(t, b, most("room/", 1), put("room/2", "x"), put("roomy", "x"))
	refused(a, 1, 2, put("room/3", "x"))
	mustApply(t, a, drop("room/1"))
	mustApply(t, b, most("room/", 1), putFor("room/3", "x", time.Microsecond))
	mustApply(t, b, most("room/", 1), put("room/4", "x")) // the third has expired
	mustApply(t, b, drop("room/2"), drop("room/4"))
	for _, bad := range []step{most("room", 1), most("", 1), most("room/", -1)} {
		if _, err := a.apply(bad, put("k", "v")); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Apply with at most %d of %q = %v, want %v", bad.Version, bad.Key, err, store.ErrInvalid)
		}
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			x := a
			if i%2 == 1 {
				x = b
			}
			if _, err := x.apply(most("room/", 4), put(fmt.Sprintf("room/n%d", i), "x")); err != nil && !errors.Is(err, store.ErrConflict) {
				t.Errorf("Apply = %v", err)
			}
		})
	}
	all.Wait()
	items, err := a.scan("room/", store.Range{})
	if err != nil || len(items) > 5 || len(items) == 0 {
		t.Errorf("%d keys, %v; want 1 to 5", len(items), err)
	}
}

// reading: Read returns keys, the first keys of groups, and what their values name.
func reading(t *testing.T, a, b actor) {
	s, ok := a.(local)
	if !ok {
		t.Fatal("the first actor is local")
	}
	mustApply(t, b, put("k", "v"), put("list/1", "x"), put("list/2", "y"), put("list/3", "gone"), putFor("list/0", "z", time.Microsecond),
		put("thing/x", "ex"), put("thing/y", "why"), put("thing/z", "zed"), put("list/4", "large"), put("list/5", "\xff odd"),
		step{Do: "put", Key: "thing/large", Value: bytes.Repeat([]byte{7}, store.LargestNamed+1)})
	for _, test := range []struct {
		name string
		q    store.Query
		want string
	}{
		{"nothing", store.Query{}, ""},
		{"keys", store.Query{Keys: []string{"k", "not", "list/0"}}, "k"},
		{"a group", store.Query{Groups: []store.Group{{Prefix: "list/", Limit: 2}}}, "list/1 list/2"},
		{"what it names", store.Query{Groups: []store.Group{{Prefix: "list/", Limit: 5, Names: "thing/"}}}, "list/1 list/2 list/3 list/4 list/5 thing/x thing/y"},
		{"both", store.Query{Keys: []string{"k"}, Groups: []store.Group{{Prefix: "list/1", Limit: 1, Names: "thing/"}, {Prefix: "none/", Limit: 3}}}, "k list/1 thing/x"},
	} {
		got, err := s.s.Read(context.Background(), test.q)
		if keys := strings.Join(slices.Sorted(maps.Keys(got)), " "); err != nil || keys != test.want {
			t.Errorf("%s: Read = %s, %v; want %s", test.name, keys, err, test.want)
		}
		for key, item := range got {
			if same, ok, err := b.get(key); err != nil || !ok || same.Version != item.Version || !bytes.Equal(same.Value, item.Value) || item.Key != key {
				t.Errorf("%s: Read has %s as %q at %d, Get as %q at %d, %v", test.name, key, item.Value, item.Version, same.Value, same.Version, err)
			}
		}
	}
	for _, bad := range []store.Query{{Keys: []string{""}}, {Groups: []store.Group{{Prefix: "list/"}}}, {Groups: []store.Group{{Prefix: "a b", Limit: 1}}}} {
		if _, err := s.s.Read(context.Background(), bad); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Read(%+v) = %v, want %v", bad, err, store.ErrInvalid)
		}
	}
}

// getAll: several keys are read at once, and those that are gone are left out. A
// key that was removed can be made again, and has a newer version.
func getAll(t *testing.T, s *store.Store) {
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
