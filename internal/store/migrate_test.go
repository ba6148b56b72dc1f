package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

const (
	newTable = "CREATE TABLE ken_more (n bigint); INSERT INTO ken_more VALUES (1);"
	// forever keeps a migration busy after it has changed something.
	forever = newTable + "INSERT INTO ken_more WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 3000000) SELECT count(*) FROM up;"
)

// migrateForever begins a migration and says so.
func migrateForever(address string) {
	fmt.Println("migrating")
	if _, err := store.OpenSteps(context.Background(), address, forever); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println("migrated")
}

func TestSQLiteMigrate(t *testing.T)   { migrate(t, storetest.SQLite) }
func TestPostgresMigrate(t *testing.T) { migrate(t, storetest.Postgres) }

// migrate: a process killed while it changes the tables leaves them as they
// were; the next one changes them; an older program, also one that has the
// store open, is then refused.
func migrate(t *testing.T, fresh func(testing.TB) string) {
	address := fresh(t)
	old := storetest.Open(t, address)
	apply(t, old, func(b *store.Batch) { b.Put("k", []byte("kept")) })
	for _, wait := range []time.Duration{5, 50, 100} {
		cmd := child(t, "migrate", address)
		out := testkit.Must(cmd.StdoutPipe())(t)
		testkit.OK(t, cmd.Start())
		lines := bufio.NewScanner(out)
		lines.Scan()
		<-time.After(wait * time.Millisecond) // any moment will do
		testkit.OK(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
		if s, err := store.Open(context.Background(), address, ""); err != nil {
			t.Fatalf("Open after a migration was killed = %v", err)
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, old, func(b *store.Batch) { b.Put("old", nil) })

	// The table is not there, or this could not make it.
	s := testkit.Must(store.OpenSteps(context.Background(), address, newTable))(t)
	defer s.Close()
	if v, _ := get(t, s, "k"); v != "kept" {
		t.Errorf("k = %q after the migration, want kept", v)
	}
	again, err := store.OpenSteps(context.Background(), address, newTable)
	if err != nil {
		t.Fatalf("Open of what was migrated = %v", err)
	}
	again.Close()

	_, err = store.Open(context.Background(), address, "")
	wantKind(t, err, store.ErrNewer, "schema version is ", "update this program")
	wantKind(t, put(old, "k", []byte("by the old one")), store.ErrNewer, old.Place(), "update this program")
	apply(t, s, func(b *store.Batch) { b.Put("k", nil) })
}

// TestSQLiteBadStep and its like: a step that goes wrong changes nothing.
func TestSQLiteBadStep(t *testing.T)   { badStep(t, storetest.SQLite) }
func TestPostgresBadStep(t *testing.T) { badStep(t, storetest.Postgres) }

func badStep(t *testing.T, fresh func(testing.TB) string) {
	address := fresh(t)
	if s, err := store.OpenSteps(context.Background(), address, newTable, "CREATE TABLE ken_item (x integer)"); err == nil {
		s.Close()
		t.Fatal("a step that cannot work was taken")
	}
	s := testkit.Must(store.OpenSteps(context.Background(), address, newTable))(t)
	defer s.Close()
	apply(t, s, func(b *store.Batch) { b.Put("k", nil) })
}

// TestPostgresNeighbours: two versions of the program work on one store at once, when the
// newer one's tables say that the older one can, and the tables go back one version
// while both have the store open.
func TestPostgresNeighbours(t *testing.T) {
	address := storetest.Postgres(t)
	ctx := t.Context()
	if m, err := store.Migrate(ctx, address, 1); err != nil || m != (store.Migrated{From: 0, To: 1}) {
		t.Fatalf("Migrate to the first schema = %+v, %v", m, err)
	}
	old := storetest.Open(t, address) // brings the tables to this program's schema
	apply(t, old, func(b *store.Batch) { b.Put("k", []byte("old")) })
	next, err := store.OpenSteps(ctx, address, "-- oldest: 2\nALTER TABLE ken_item ADD COLUMN note text")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	for range 3 {
		apply(t, next, func(b *store.Batch) { b.Put("k", []byte("next")) })
		apply(t, old, func(b *store.Batch) { b.Put("k", []byte("old")) })
	}
	again := storetest.Open(t, address)
	if v, _ := get(t, again, "k"); v != "old" {
		t.Errorf("k = %q on tables of the next version, want old", v)
	}
	// This program does not know how to take the other's step back.
	_, err = store.Migrate(ctx, address, 1)
	wantKind(t, err, store.ErrNewer, "schema version is 3", "use the newer program")

	second := storetest.Postgres(t)
	both := storetest.Open(t, second)
	apply(t, both, func(b *store.Batch) { b.Put("k", []byte("kept")) })
	for _, to := range []int{1, 0, 1} {
		if _, err := store.Migrate(ctx, second, to); err != nil {
			t.Fatalf("Migrate to %d: %v", to, err)
		}
		apply(t, both, func(b *store.Batch) { b.Put("more", nil) })
		if v, _ := get(t, both, "k"); v != "kept" {
			t.Errorf("k = %q after the tables changed, want kept", v)
		}
	}
	_, err = store.Migrate(ctx, second, 99)
	wantKind(t, err, store.ErrInvalid, "schema 99", "this program knows 1 to")
	_, err = store.Migrate(ctx, storetest.SQLite(t), 1)
	wantKind(t, err, store.ErrInvalid, "migrate store", "PostgreSQL")
}
