// Package storetest tests what every kind of store must do: alone, for two
// stores in one process, and for two processes.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/internal/store"
	"ken/internal/testkit"
)

// patience is how long a case waits for what must happen.
const patience = 20 * time.Second

// Run tests the kind of store whose addresses fresh makes: of a new and empty
// place each time. See [Main] for what else the test binary needs.
func Run(t *testing.T, fresh func(testing.TB) (address string)) {
	for name, setting := range map[string]func(t *testing.T) (a, b actor){
		"one": func(t *testing.T) (a, b actor) {
			s := Open(t, fresh(t))
			return local{s}, local{s}
		},
		"two": func(t *testing.T) (a, b actor) {
			address := fresh(t)
			return local{Open(t, address)}, local{Open(t, address)}
		},
		"processes": func(t *testing.T) (a, b actor) {
			address := fresh(t)
			return local{Open(t, address)}, start(t, address)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "one" {
				testkit.CI(t, "two stores in one place")
			}
			for _, c := range []struct {
				name string
				test func(t *testing.T, a, b actor)
			}{
				{"values", values}, {"conditions", conditions}, {"atMost", atMost}, {"reading", reading}, {"expiry", expiry}, {"scan", scan}, {"pages", pages},
				{"watch", watch}, {"resume", resume}, {"claim", claim}, {"count", count}, {"transfer", transfer}, {"model", model},
			} {
				t.Run(c.name, func(t *testing.T) {
					if slices.Contains([]string{"pages", "claim", "count", "transfer", "model"}, c.name) {
						testkit.CI(t, "writes a lot")
					}
					a, b := setting(t)
					c.test(t, a, b)
				})
			}
		})
	}
	t.Run("getAll", func(t *testing.T) { getAll(t, Open(t, fresh(t))) })
	t.Run("limits", func(t *testing.T) { limits(t, Open(t, fresh(t))) })
	t.Run("context", func(t *testing.T) { ends(t, Open(t, fresh(t))) })
	t.Run("closed", func(t *testing.T) { closed(t, Open(t, fresh(t))) })
	t.Run("openAtOnce", func(t *testing.T) { openAtOnce(t, fresh(t)) })
	t.Run("kill", func(t *testing.T) {
		testkit.CI(t, "a process that is killed")
		kill(t, fresh(t))
	})
}

// Open opens a store for a test, which closes it.
func Open(t testing.TB, address string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), address, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustApply(t testing.TB, a actor, steps ...step) int64 {
	t.Helper()
	version, err := a.apply(steps...)
	if err != nil {
		t.Fatalf("Apply(%+v) = %v", steps, err)
	}
	return version
}

// wantValue checks what an actor reads; "" means absent.
func wantValue(t testing.TB, a actor, key, want string, version int64) {
	t.Helper()
	item, ok, err := a.get(key)
	switch {
	case err != nil:
		t.Fatalf("Get(%s) = %v", key, err)
	case ok != (want != ""):
		t.Errorf("Get(%s) found = %v, want %v", key, ok, want != "")
	case ok && (string(item.Value) != want || item.Version != version || item.Key != key):
		t.Errorf("Get(%s) = %q at %d, want %q at %d", key, item.Value, item.Version, want, version)
	}
}

func values(t *testing.T, a, b actor) {
	wantValue(t, a, "k", "", 0)
	v1 := mustApply(t, a, put("k", "one"))
	wantValue(t, b, "k", "one", v1)
	v2 := mustApply(t, b, put("k", "two"), put("other", "x"))
	if v2 <= v1 {
		t.Errorf("version %d of the second batch, want more than %d", v2, v1)
	}
	wantValue(t, a, "k", "two", v2)
	wantValue(t, a, "other", "x", v2)
	v3 := mustApply(t, a, drop("k"), drop("never"))
	wantValue(t, b, "k", "", 0)
	v4 := mustApply(t, b, absent("k"), put("k", "three"))
	if v4 <= v3 {
		t.Errorf("version %d after a delete at %d, want more: an old version must not come back", v4, v3)
	}
	wantValue(t, a, "k", "three", v4)
	for _, v := range [][]byte{{}, {0}, []byte("\x00\xff\n'\""), bytes.Repeat([]byte{7}, 1<<20)} {
		version := mustApply(t, a, step{Do: "put", Key: "bytes", Value: v})
		item, ok, err := b.get("bytes")
		if err != nil || !ok || !bytes.Equal(item.Value, v) || item.Version != version || !item.Expires.IsZero() {
			t.Errorf("Get(bytes) = %d bytes at %d expires %v, %v, %v; want %d bytes at %d", len(item.Value), item.Version, item.Expires, ok, err, len(v), version)
		}
	}
	if v := mustApply(t, b, drop("never")); v < v4 {
		t.Errorf("version %d of a batch that changes nothing, want that of the store", v)
	}
}

func conditions(t *testing.T, a, b actor) {
	v := mustApply(t, a, put("here", "1"))
	w := mustApply(t, b, put("newer", "1"))
	for _, test := range []struct {
		name string
		on   []step
		want *store.Conflict
	}{
		{"absent", []step{absent("not")}, nil},
		{"at", []step{at("here", v)}, nil},
		{"at zero", []step{at("not", 0)}, nil},
		{"both", []step{at("here", v), absent("not")}, nil},
		{"is there", []step{absent("here")}, &store.Conflict{Key: "here", Have: v}},
		{"is there, at zero", []step{at("here", 0)}, &store.Conflict{Key: "here", Have: v}},
		{"is not there", []step{at("not", v)}, &store.Conflict{Key: "not", Want: v}},
		{"older", []step{at("newer", v)}, &store.Conflict{Key: "newer", Want: v, Have: w}},
		{"one of two", []step{at("here", v), absent("newer")}, &store.Conflict{Key: "newer", Have: w}},
	} {
		for _, x := range []actor{a, b} {
			_, err := x.apply(append(test.on, put("mark/1", test.name), put("mark/2", test.name), drop("newer2"))...)
			var got *store.Conflict
			errors.As(err, &got)
			if (err == nil) != (test.want == nil) || test.want != nil && (got == nil || *got != *test.want || !errors.Is(err, store.ErrConflict)) {
				t.Errorf("%s: Apply = %v, want %v", test.name, err, test.want)
			}
			marks, err := x.scan("mark/", store.Range{})
			if wrote := len(marks) == 2; err != nil || wrote != (test.want == nil) || len(marks) == 1 {
				t.Errorf("%s: wrote %d of 2, %v", test.name, len(marks), err)
			}
			mustApply(t, a, drop("mark/1"), drop("mark/2"))
		}
	}
	// A condition on one key guards the write of another, and a failed batch
	// leaves versions as they were.
	wantValue(t, b, "here", "1", v)
	if _, err := b.apply(at("here", v+1000), put("here", "2")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Apply at a version to come = %v, want a conflict", err)
	}
	mustApply(t, b, at("here", v), drop("here"))
	if _, err := a.apply(at("here", v), put("here", "2")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Apply at the version of a deleted key = %v, want a conflict", err)
	}
}

func expiry(t *testing.T, a, b actor) {
	v := mustApply(t, a, putFor("lock", "a", time.Hour))
	item, ok, err := b.get("lock")
	if err != nil || !ok || time.Until(item.Expires) < 50*time.Minute || time.Until(item.Expires) > 70*time.Minute {
		t.Fatalf("Get(lock) = %v, %v, %v; want one that expires in an hour", item, ok, err)
	}
	if _, err := b.apply(absent("lock"), putFor("lock", "b", time.Hour)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Apply with the lock held = %v, want a conflict", err)
	}
	// The holder makes it short; the other one waits and takes it.
	v = mustApply(t, a, at("lock", v), putFor("lock", "a", 50*time.Millisecond))
	deadline := time.Now().Add(patience)
	var w int64
	for {
		if w, err = b.apply(absent("lock"), putFor("lock", "b", time.Hour)); err == nil {
			break
		}
		if !errors.Is(err, store.ErrConflict) || time.Now().After(deadline) {
			t.Fatalf("Apply after the lock's time = %v", err)
		}
	}
	if w <= v {
		t.Errorf("version %d of the new lock, want more than %d", w, v)
	}
	if _, err := a.apply(at("lock", v), drop("lock")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Apply of the former holder = %v, want a conflict", err)
	}
	wantValue(t, a, "lock", "b", w)
	// Gone at once: not read, not listed, not at its version, and absent.
	v = mustApply(t, a, putFor("brief", "x", time.Microsecond), put("bright", "y"))
	wantValue(t, b, "brief", "", 0)
	if items, err := b.scan("bri", store.Range{}); err != nil || len(items) != 1 {
		t.Errorf("Scan(bri) = %v, %v; want bright alone", items, err)
	}
	if _, err := b.apply(at("brief", v), put("no", "")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Apply at the version of an expired key = %v, want a conflict", err)
	}
	v = mustApply(t, b, absent("brief"), put("brief", "again"))
	item, _, err = a.get("brief")
	if err != nil || !item.Expires.IsZero() || item.Version != v {
		t.Errorf("Get(brief) = %+v, %v; want one that stays", item, err)
	}
}

func keysOf(items []store.Item) string {
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return strings.Join(keys, " ")
}

func scan(t *testing.T, a, b actor) {
	keys := []string{"a", "a%2Fb", "a+", "a,", "a-b", "a.", "a/B", "a/a", "a/a/x", "a/b", "a/b/c", "a0", "a:", "a=", "a@", "aB", "a_", "ab", "a~", "b/1", "b/10", "b/2"}
	if !slices.IsSorted(keys) {
		t.Fatal("the keys of the test are not in order")
	}
	for i, key := range keys { // odd ones by the other
		mustApply(t, []actor{a, b}[i%2], put(key, key))
	}
	mustApply(t, b, put("a/gone", "x"))
	mustApply(t, a, drop("a/gone"), putFor("a/short", "x", time.Microsecond))
	for _, test := range []struct {
		prefix string
		r      store.Range
		want   string
	}{
		{"", store.Range{}, strings.Join(keys, " ")},
		{"a/", store.Range{}, "a/B a/a a/a/x a/b a/b/c"},
		{"a/a", store.Range{}, "a/a a/a/x"},
		{"b/1", store.Range{}, "b/1 b/10"},
		{"a~", store.Range{}, "a~"},
		{"c", store.Range{}, ""},
		{"a/", store.Range{After: "a/a"}, "a/a/x a/b a/b/c"},
		{"a/", store.Range{After: "a/aa"}, "a/b a/b/c"},
		{"a/", store.Range{After: "a"}, "a/B a/a a/a/x a/b a/b/c"},
		{"a/", store.Range{After: "b"}, ""},
		{"a/", store.Range{After: "a/a", Limit: 2}, "a/a/x a/b"},
		{"a/", store.Range{Limit: 1}, "a/B"},
		{"", store.Range{After: "b/1"}, "b/10 b/2"},
	} {
		for _, x := range []actor{a, b} {
			items, err := x.scan(test.prefix, test.r)
			if got := keysOf(items); err != nil || got != test.want {
				t.Errorf("Scan(%q, %+v) = %s, %v; want %s", test.prefix, test.r, got, err, test.want)
			}
			for _, item := range items {
				if string(item.Value) != item.Key || item.Version == 0 {
					t.Errorf("Scan(%q) gives %s the value %q at %d", test.prefix, item.Key, item.Value, item.Version)
				}
			}
		}
	}
}

// pages: more than a page of items, and more than a page of bytes.
func pages(t *testing.T, a, b actor) {
	const n = 1000
	steps := make([]step, n)
	for i := range steps {
		steps[i] = put(fmt.Sprintf("n/%04d", i), fmt.Sprint(i))
	}
	mustApply(t, a, steps...)
	for i := range 7 {
		mustApply(t, a, step{Do: "put", Key: fmt.Sprintf("big/%d", i), Value: bytes.Repeat([]byte{byte(i)}, 600_000)})
	}
	for _, limit := range []int{0, 1, 128, 129, 999, 2000} {
		want := n
		if limit > 0 {
			want = min(n, limit)
		}
		items, err := b.scan("n/", store.Range{Limit: limit})
		if err != nil || len(items) != want {
			t.Fatalf("Scan with limit %d = %d items, %v; want %d", limit, len(items), err, want)
		}
		for i, item := range items {
			if item.Key != fmt.Sprintf("n/%04d", i) || string(item.Value) != fmt.Sprint(i) {
				t.Fatalf("item %d = %s: %s", i, item.Key, item.Value)
			}
		}
	}
	items, err := b.scan("big/", store.Range{})
	if err != nil || len(items) != 7 {
		t.Fatalf("Scan(big/) = %d items, %v; want 7", len(items), err)
	}
	for i, item := range items {
		if len(item.Value) != 600_000 || item.Value[599_999] != byte(i) {
			t.Errorf("%s has %d bytes that end in %d", item.Key, len(item.Value), item.Value[len(item.Value)-1])
		}
	}
	changes, stop := b.watch("", 0)
	defer stop()
	for range n + 7 {
		next(t, changes)
	}
}
