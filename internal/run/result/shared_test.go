package result

import (
	"context"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/objectstore"
	"ken/internal/store"
	"ken/internal/testkit/objectstoretest"
	"ken/internal/testkit/storetest"
)

// replicas are two stores with a folder each, over one database.
func replicas(t *testing.T, cfg Config) (db *store.Store, one, other *Store) {
	t.Helper()
	db, err := store.Open(t.Context(), storetest.Address(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	cfg.Shared = func() (*store.Store, error) { return db, nil }
	return db, open(t, cfg), open(t, cfg)
}

// TestShared has two replicas with a folder each and one store: what one keeps the
// other reads, lists and removes, and no one else reads it.
func TestShared(t *testing.T) {
	db, one, other := replicas(t, Config{PerSession: 4})

	short := keep(t, one, ada, "a", "short", false)
	long := keep(t, one, ada, "a", strings.Repeat("0123456789abcdef\n", 200_000), false) // 3.4 MB, four pieces
	if x := read(t, other, Query{Handle: short.Handle}); x.Text != "short" {
		t.Errorf("the other replica reads %q, want short", x.Text)
	}
	if x := read(t, other, Query{Handle: "last", Op: OpTail, Count: 1}); x.Entry.Handle != long.Handle || x.Text != "0123456789abcdef\n" || x.Entry.Lines != 200_000 {
		t.Errorf("the last result of the other replica is %+v", x)
	}
	mine := keep(t, other, ada, "b", "by the other", false)
	if x := read(t, one, Query{Handle: "last"}); x.Text != "by the other" {
		t.Errorf("last = %q, want that of the other replica", x.Text)
	}
	if list, err := one.List(ada, Filter{}); err != nil || len(list) != 3 || list[0].Handle != mine.Handle || list[2].Handle != short.Handle {
		t.Errorf("List = %v, %v, want three, newest first", list, err)
	}
	eve := Scope{Tenant: "t", Principal: "eve", Session: "s1"}
	gone(t, other, eve, short.Handle)
	if err := one.Remove(ada, short.Handle); err != nil {
		t.Fatal(err)
	}
	gone(t, other, ada, short.Handle)
	if err := other.RemoveSession(ada); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{one, other} {
		if list, err := s.List(ada, Filter{}); err != nil || len(list) != 0 {
			t.Errorf("after the session was removed List = %v, %v", list, err)
		}
		gone(t, s, ada, long.Handle)
	}
	n := 0
	for range db.Scan(t.Context(), "result", store.Range{}) {
		n++
	}
	if n != 0 {
		t.Errorf("%d keys are left in the store", n)
	}
}

// TestObjects has two replicas with an object store: a long text is there and not in the
// store, both replicas read it, and it goes when it is removed or has expired.
func TestObjects(t *testing.T) {
	server := objectstoretest.New(t)
	bucket, err := objectstore.Open(objectstore.Config{Address: server.Address, Secret: func(name string) (string, error) {
		return map[string]string{objectstore.IDName: objectstoretest.ID, objectstore.SecretName: objectstoretest.Secret}[name], nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	db, one, other := replicas(t, Config{Objects: bucket})
	short := keep(t, one, ada, "a", "short", false)
	line := "0123456789abcdef\n"
	long := keep(t, one, ada, "a", strings.Repeat(line, 200_000), false)
	if keys := server.Keys(); len(keys) != 1 || !strings.HasSuffix(keys[0], long.Handle) {
		t.Errorf("the objects are %q, want the long text alone", keys)
	}
	for range db.Scan(t.Context(), "result-text/"+ada.folder()+"/"+long.Handle, store.Range{}) {
		t.Error("the long text is in the store too")
	}
	if x := read(t, other, Query{Handle: short.Handle}); x.Text != "short" {
		t.Errorf("the other replica reads %q, want short", x.Text)
	}
	if x := read(t, other, Query{Handle: long.Handle, Op: OpTail, Count: 1}); x.Text != line {
		t.Errorf("the other replica reads %q", x.Text)
	}
	if err := other.Remove(ada, long.Handle); err != nil {
		t.Fatal(err)
	}
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("after it was removed the objects are %q", keys)
	}

	// What no description names any more goes by itself.
	lost := keep(t, one, ada, "a", strings.Repeat(line, 10_000), false)
	server.Age(25 * time.Hour)
	if _, err := other.Sweep(t.Context()); err != nil || len(server.Keys()) != 0 {
		t.Errorf("a sweep leaves %q, %v", server.Keys(), err)
	}
	gone(t, other, ada, lost.Handle)
	server.Fail("AccessDenied", 1)
	if _, err := one.Keep(ada, About{}, []byte(strings.Repeat(line, 10_000)), false, nil); capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("Keep without the right to = %v, want unavailable", err)
	}
}

// TestSharedAway: without the store nothing is kept that only one replica could read.
func TestSharedAway(t *testing.T) {
	db, s, _ := replicas(t, Config{})
	e := keep(t, s, ada, "a", "text", false)
	db.Close()
	if _, err := s.Keep(ada, About{}, []byte("x"), false, nil); capability.KindOf(err) != capability.Unavailable {
		t.Errorf("Keep = %v, want unavailable", err)
	}
	if _, err := s.Read(context.Background(), ada, Query{Handle: e.Handle}); capability.KindOf(err) != capability.Unavailable {
		t.Errorf("Read = %v, want unavailable", err)
	}
}
