//go:build unix

package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestPostgresLostAnswer: when the connection breaks while a batch is written,
// the caller learns what became of it.
func TestPostgresLostAnswer(t *testing.T) {
	address := storetest.Postgres(t)
	direct := storetest.Open(t, address)
	w := storetest.NewWire(t, address)
	s := storetest.Open(t, w.Address)
	apply(t, s, func(b *store.Batch) { b.Put("warm", nil) })

	w.CutAfter("this arrives", false)
	version := apply(t, s, func(b *store.Batch) { b.Absent("k/1"); b.Put("k/1", []byte("this arrives")) })
	item, ok, err := direct.Get(context.Background(), "k/1")
	if err != nil || !ok || item.Version != version {
		t.Errorf("Get(k/1) = %+v, %v, %v; want it at %d", item, ok, err, version)
	}

	w.CutBefore("this does not")
	var b store.Batch
	b.Put("k/2", []byte("this does not"))
	version, err = s.Apply(context.Background(), &b) // it is known that nothing was written, so it is written again
	if item, ok, unread := direct.Get(context.Background(), "k/2"); err != nil || unread != nil || !ok || item.Version != version {
		t.Errorf("Apply = %d, %v; then Get(k/2) = %+v, %v, %v", version, err, item, ok, unread)
	}

	store.SetWait(s, time.Second)
	w.CutAfter("who knows", true) // no way back until it is too late
	var c store.Batch
	c.Put("k/3", []byte("who knows"))
	_, err = s.Apply(context.Background(), &c)
	wantKind(t, err, store.ErrUncertain, s.Place(), "read the keys")
	_, err = s.Apply(context.Background(), &c)
	wantKind(t, err, store.ErrUnavailable, s.Place(), "server runs")
	_, _, err = s.Get(context.Background(), "k/3")
	wantKind(t, err, store.ErrUnavailable, s.Place(), "server runs")
	w.Up()
	if _, ok := get(t, s, "k/3"); !ok {
		t.Error("k/3 is not there; the server had it")
	}
}

// TestPostgresFence: a commit whose answer was lost, and of which it was found that it
// was not made, is not made later either: not the first of a process, and not those
// after it.
func TestPostgresFence(t *testing.T) {
	s := storetest.Open(t, storetest.Postgres(t))
	for _, key := range []string{"first", "second"} {
		var b store.Batch
		b.Put(key, []byte("late"))
		testkit.OK(t, store.LateOnce(t.Context(), s, &b))
		if _, ok := get(t, s, key); ok {
			t.Errorf("the commit that was fenced off wrote %s", key)
		}
		apply(t, s, func(b *store.Batch) { b.Put("between", nil) })
	}
}

// TestPostgresReconnect: a watch whose connections break, and stay away for a
// while, loses nothing of what others write meanwhile.
func TestPostgresReconnect(t *testing.T) {
	address := storetest.Postgres(t)
	direct := storetest.Open(t, address)
	w := storetest.NewWire(t, address)
	s := storetest.Open(t, w.Address)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	told := make(chan store.Change, 100)
	watching := s.Watch(ctx, "k/", store.FromNow)
	var done sync.WaitGroup
	defer done.Wait()
	defer cancel()
	done.Go(func() {
		defer close(told)
		for c, err := range watching {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("Watch = %v", err)
				}
				return
			}
			told <- c
		}
	})
	want := func(key string, gone bool) {
		t.Helper()
		if c := <-told; c.Key != key || c.Gone != gone {
			t.Fatalf("the watch told %+v, want %s, gone %v", c, key, gone)
		}
	}
	apply(t, direct, func(b *store.Batch) { b.Put("k/1", nil) })
	want("k/1", false)
	for i := range 3 {
		w.Down()
		key := fmt.Sprintf("k/2-%d", i)
		apply(t, direct, func(b *store.Batch) { b.Put(key, nil) })
		apply(t, direct, func(b *store.Batch) { b.Delete("k/1") })
		apply(t, direct, func(b *store.Batch) { b.Put("k/1", nil) })
		w.Up()
		want(key, false)
		want("k/1", false)
	}
	w.Cut()
	apply(t, direct, func(b *store.Batch) { b.Delete("k/1") })
	want("k/1", true)
}

// TestPostgresRefusals: what the server or the address refuses is named, and
// never the password.
func TestPostgresRefusals(t *testing.T) {
	address := storetest.Postgres(t)
	u := testkit.Must(url.Parse(address))(t)
	open := func(change func(u *url.URL, q url.Values)) error {
		v, q := *u, u.Query()
		change(&v, q)
		v.RawQuery = q.Encode()
		s, err := store.Open(context.Background(), v.String(), "")
		if err == nil {
			err = put(s, "k", nil)
			s.Close()
		}
		return err
	}
	testkit.OK(t, open(func(*url.URL, url.Values) {}))
	err := open(func(_ *url.URL, q url.Values) { q.Set("default_transaction_read_only", "on") })
	// An operator sets this, and hosted servers do whose disk is nearly full.
	wantKind(t, err, store.ErrReadOnly, "25006", "use the primary server")
	const secret = "hunter2hunter2"
	user := func(u *url.URL) { u.User = url.UserPassword("postgres", secret) }
	for name, test := range map[string]struct {
		change func(u *url.URL, q url.Values)
		kind   error
		mend   string
	}{
		"no database": {func(u *url.URL, _ url.Values) { user(u); u.Path = "/ken_none" }, store.ErrUnavailable, "fix user, password"},
		"no server":   {func(u *url.URL, q url.Values) { user(u); q.Set("host", "/nowhere") }, store.ErrUnavailable, "server runs"},
		"no schema":   {func(u *url.URL, q url.Values) { user(u); q.Set("search_path", "ken_none") }, store.ErrUnavailable, "search_path"},
		"secret host": {func(u *url.URL, q url.Values) { user(u); q.Set("host", "/"+secret) }, store.ErrUnavailable, "server runs"},
	} {
		err := open(test.change)
		wantKind(t, err, test.kind, "open store postgres://", test.mend)
		if name != "secret host" && err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
	}
}

// TestPostgresSweep: what has long been gone is swept in steps, and a watch
// from before that is told.
func TestPostgresSweep(t *testing.T) {
	address := storetest.Postgres(t)
	s := storetest.Open(t, address)
	v := apply(t, s, func(b *store.Batch) { b.Put("stays", nil) })
	ctx := context.Background()
	conn := testkit.Must(pgx.Connect(ctx, address))(t)
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `INSERT INTO ken_item SELECT 'old/' || n, 1, (extract(epoch FROM now()) * 1000000)::bigint - 601 * 1000000, '' FROM generate_series(1, 600) AS n;
		INSERT INTO ken_item SELECT 'late/' || n, 1, (extract(epoch FROM now()) * 1000000)::bigint - 500 * 1000000, '' FROM generate_series(1, 10) AS n;
		UPDATE ken_item SET version = 5 WHERE key = 'old/1'; UPDATE ken_head SET version = 10`); err != nil {
		t.Fatal(err)
	}
	again := storetest.Open(t, address) // its first write sweeps; each of the two has a receipt
	var rows []int
	for range 4 {
		apply(t, again, func(b *store.Batch) { b.Put("stays", nil) })
		var n int
		testkit.OK(t, conn.QueryRow(ctx, "SELECT count(*) FROM ken_item").Scan(&n))
		rows = append(rows, n)
	}
	if got, want := fmt.Sprint(rows), "[357 101 13 13]"; got != want {
		t.Errorf("rows after each write = %s, want %s", got, want)
	}
	for c, err := range s.Watch(ctx, "", v) {
		if !errors.Is(err, store.ErrLagged) {
			t.Errorf("Watch from before = %+v, %v; want %v", c, err, store.ErrLagged)
		}
		break
	}
	for c, err := range s.Watch(ctx, "", 5) {
		if err != nil || c.Key != "stays" {
			t.Errorf("Watch after the newest that was swept = %+v, %v; want stays", c, err)
		}
		break
	}
}

// TestPostgresRestored: a store that has seen a later version refuses to write to an
// earlier state, but for a batch that goes past what was seen.
func TestPostgresRestored(t *testing.T) {
	address := storetest.Postgres(t)
	s := storetest.Open(t, address)
	apply(t, s, func(b *store.Batch) { b.Put("k", []byte("1")) })
	apply(t, s, func(b *store.Batch) { b.Put("k", []byte("2")) })
	conn := testkit.Must(pgx.Connect(t.Context(), address))(t)
	defer conn.Close(t.Context())
	testkit.Must(conn.Exec(t.Context(), "UPDATE ken_head SET version = 1"))(t)
	wantKind(t, put(s, "k", []byte("3")), store.ErrRestored, "it is at version 1, and this process has seen version 2", "ken doctor --cluster")
	var b store.Batch
	b.Put("k", []byte("3"))
	b.Past(5)
	if v, err := s.Apply(t.Context(), &b); v != 6 || err != nil {
		t.Errorf("Apply past version 5 = %d, %v, want 6", v, err)
	}
	if v := apply(t, s, func(b *store.Batch) { b.Put("k", nil) }); v != 7 {
		t.Errorf("the next version is %d, want 7", v)
	}
}
