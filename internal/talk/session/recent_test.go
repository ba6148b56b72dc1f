package session

import (
	"fmt"
	"testing"

	"ken/internal/store"
)

// TestRecentBounds: neither many nor large sessions fill the memory, what was
// used last stays, and what is not the same head is not known.
func TestRecentBounds(t *testing.T) {
	var r recent
	key := func(i int) string { return fmt.Sprint("session/", i) }
	has := func(i int) bool {
		_, ok := r.get(store.Item{Key: key(i), Version: 1, Value: []byte("head")})
		return ok
	}
	check := func() {
		t.Helper()
		size := 0
		for _, u := range r.have {
			size += u.size
		}
		if len(r.have) > recentSessions || r.bytes > recentBytes || r.bytes != size {
			t.Fatalf("%d sessions of %d bytes, counted as %d", len(r.have), size, r.bytes)
		}
	}
	at := func(size int) snapshot { return snapshot{version: 1, head: []byte("head"), size: size} }
	for i := range 1000 {
		r.put(key(i), at(1000))
		check()
		if !has(0) || !has(i) {
			t.Fatalf("after %d the one that is used, or the last, is gone", i)
		}
	}
	if len(r.have) != recentSessions || has(500) {
		t.Errorf("%d sessions are kept", len(r.have))
	}
	for i := range 20 {
		r.put(key(i), at(recentBytes/10))
		check()
	}
	if !has(19) || has(9) {
		t.Error("the last large one is gone, or an early one is there")
	}
	r.put(key(19), at(recentBytes))
	if check(); has(19) {
		t.Error("one that fills all is kept")
	}
	newer := at(10)
	newer.version = 2
	r.put(key(1), newer)
	r.put(key(1), at(10))
	for _, item := range []store.Item{
		{Key: key(1), Version: 1, Value: []byte("head")},
		{Key: key(1), Version: 3, Value: []byte("head")},
		{Key: key(1), Version: 2, Value: []byte("hand")},
		{Key: key(2000), Version: 2, Value: []byte("head")},
	} {
		if _, ok := r.get(item); ok {
			t.Errorf("get(%s, %d, %s) is known", item.Key, item.Version, item.Value)
		}
	}
	if _, ok := r.get(store.Item{Key: key(1), Version: 2, Value: []byte("head")}); !ok {
		t.Error("an older version took the place of a newer one")
	}
	for i := range 1000 {
		r.drop(key(i))
	}
	if check(); len(r.have) != 0 || r.bytes != 0 {
		t.Errorf("%d sessions of %d bytes are left", len(r.have), r.bytes)
	}
}
