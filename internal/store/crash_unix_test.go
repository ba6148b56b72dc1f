//go:build unix

package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestPostgresCrash: the server crashes while a batch is written and loses its
// transaction, whose number it then gives to another. Whoever wrote the batch
// is not told that it is there.
func TestPostgresCrash(t *testing.T) {
	server := storetest.NewServer(t)
	tests := map[string]struct {
		between func(t *testing.T, direct *store.Store, xid string) // after the crash, before the store can ask
	}{
		"nothing else": {func(*testing.T, *store.Store, string) {}},
		"another program": {func(t *testing.T, _ *store.Store, xid string) {
			for server.SQL("SELECT (pg_current_xact_id()::text::bigint >= "+xid+")::text") == "false" {
			}
		}},
		"another store": {func(t *testing.T, direct *store.Store, xid string) {
			for i := 0; server.SQL("SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::bigint > "+xid+")::text") == "false"; i++ {
				apply(t, direct, func(b *store.Batch) { b.Put(fmt.Sprintf("other/%d", i), nil) })
			}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			w := storetest.NewWire(t, server.Address)
			s := storetest.Open(t, w.Address)
			store.SetWait(s, 3*time.Second)
			apply(t, s, func(b *store.Batch) { b.Put("k", []byte("old")) })
			// The batch comes as far as a row that somebody holds.
			holder := testkit.Must(pgx.Connect(ctx, server.Address))(t)
			defer holder.Close(ctx)
			testkit.Must(holder.Exec(ctx, "BEGIN; SELECT 1 FROM ken_item WHERE key = 'k' FOR UPDATE"))(t)
			var done sync.WaitGroup
			var wrote error
			done.Go(func() {
				var b store.Batch
				b.Put("k", []byte("new"))
				_, wrote = s.Apply(ctx, &b)
			})
			var xid string
			for xid == "" || xid == "<nil>" {
				xid = server.SQL("SELECT max(backend_xid::text) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO ken_item%'")
			}
			w.Down() // it cannot ask until it is too late
			server.Crash()
			direct := storetest.Open(t, server.Address)
			test.between(t, direct, xid)
			status := "not yet given again"
			if server.SQL("SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::bigint > "+xid+")::text") == "true" {
				status = server.SQL("SELECT pg_xact_status('" + xid + "')")
			}
			w.Up()
			done.Wait()
			if value, _ := get(t, direct, "k"); wrote != nil || value != "new" {
				t.Errorf("Apply = %v and k is %s, with transaction %s %s; want it written again", wrote, value, xid, status)
			}
			apply(t, s, func(b *store.Batch) { b.Put("k", []byte("newer")) })
		})
	}
}

// TestPostgresRestart: the server is shut down and started while a batch is
// written, whose answer is lost. It is there, and whoever wrote it learns that.
func TestPostgresRestart(t *testing.T) {
	server := storetest.NewServer(t)
	w := storetest.NewWire(t, server.Address)
	s := storetest.Open(t, w.Address)
	apply(t, s, func(b *store.Batch) { b.Put("warm", nil) })
	w.CutAfter("this arrives", false)
	var done sync.WaitGroup
	done.Go(func() {
		apply(t, s, func(b *store.Batch) { b.Absent("k"); b.Put("k", []byte("this arrives")) })
	})
	for server.SQL("SELECT count(*) FROM ken_item WHERE key = 'k'") == "0" {
	}
	server.Stop()
	server.Start()
	done.Wait()
	if _, ok := get(t, storetest.Open(t, server.Address), "k"); !ok {
		t.Error("k is gone")
	}
}
