package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestCheck: a store that can be written is found well without a write, and one
// answer stands for a second.
func TestCheck(t *testing.T) {
	s := storetest.Open(t, storetest.Address(t))
	ctx := context.Background()
	before := store.Head(s)
	for range 3 {
		store.Recheck(s)
		if err := s.Check(ctx); err != nil {
			t.Fatalf("Check() = %v, want none", err)
		}
	}
	if head := store.Head(s); head != before {
		t.Errorf("Check() wrote: the newest version is %d, and was %d", head, before)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	store.Recheck(s)
	if err := s.Check(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Check() = %v with a context that has ended, want that", err)
	}
	if err := s.Check(ctx); err != nil {
		t.Errorf("Check() = %v after somebody else gave up, want none", err)
	}
	store.Hold(s)
	testkit.OK(t, s.Close())
	if err := s.Check(ctx); err != nil {
		t.Errorf("Check() = %v at once, want the answer of just now", err)
	}
	store.Recheck(s)
	if err := s.Check(ctx); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Check() = %v, want %v", err, store.ErrClosed)
	}
}

// TestCheckLearns: a write that failed is remembered until one goes through,
// which Check tries itself; what is only compared proves nothing.
func TestCheckLearns(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite(t))
	ctx := context.Background()
	refuse := func() {
		testkit.OK(t, store.SQL(s, "CREATE TRIGGER no BEFORE INSERT ON ken_item BEGIN SELECT RAISE(ABORT, 'no'); END"))
	}
	refuse()
	if put(s, "k", []byte("v")) == nil {
		t.Fatal("Apply() succeeds, want the trigger's error")
	}
	var none store.Batch
	none.Absent("not")
	testkit.Must(s.Apply(ctx, &none))(t)
	if err := s.Check(ctx); err == nil {
		t.Error("Check() = nil while nothing can be written")
	}
	store.Hold(s)
	testkit.OK(t, store.SQL(s, "DROP TRIGGER no"))
	if err := s.Check(ctx); err == nil {
		t.Error("Check() = nil within a second, want the answer of just now")
	}
	store.Recheck(s)
	if err := s.Check(ctx); err != nil {
		t.Errorf("Check() = %v afterwards, want none", err)
	}
	after := store.Head(s)
	store.Recheck(s)
	if err := s.Check(ctx); err != nil || store.Head(s) != after {
		t.Errorf("Check() = %v, and the newest version is %d; want none and %d: what goes through is not tried", err, store.Head(s), after)
	}
}

// TestCheckStands: an answer stands for a second and no longer.
func TestCheckStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ken.db")
		s := testkit.Must(store.Open(context.Background(), file, ""))(t)
		testkit.OK(t, s.Check(context.Background()))
		testkit.OK(t, os.Rename(file, file+".away"))
		time.Sleep(999 * time.Millisecond)
		if err := s.Check(context.Background()); err != nil {
			t.Errorf("Check() = %v within a second, want none", err)
		}
		time.Sleep(2 * time.Millisecond)
		if err := s.Check(context.Background()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Check() = %v after a second, want %v", err, store.ErrUnavailable)
		}
		s.Close()
	})
}

// TestPostgresCheck: a server that is away is found without a write, and so is
// one that lets us read only.
func TestPostgresCheck(t *testing.T) {
	o := storetest.NewOutage(t)
	s := storetest.Open(t, o.Address)
	ctx := context.Background()
	check := func() error {
		store.Recheck(s)
		return s.Check(ctx)
	}
	testkit.OK(t, check())
	store.SetWait(s, time.Nanosecond)
	if err := check(); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check() = %v of a server that takes too long, want %v", err, store.ErrUnavailable)
	}
	store.SetWait(s, time.Minute)
	store.Hold(s)
	if err := s.Check(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Check() = %v at once, want the answer of just now: the caller did not give up", err)
	}
	o.Down()
	if err := check(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Check() = %v without a server, want %v", err, store.ErrUnavailable)
	}
	o.Up()
	if err := check(); err != nil {
		t.Errorf("Check() = %v afterwards, want none", err)
	}
	o.ReadOnly()
	if err := check(); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Check() = %v, want %v", err, store.ErrReadOnly)
	}
}
