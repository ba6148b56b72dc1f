package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

func apply(t testing.TB, s *store.Store, build func(b *store.Batch)) int64 {
	t.Helper()
	var b store.Batch
	build(&b)
	version := testkit.Must(s.Apply(context.Background(), &b))(t)
	return version
}

// put writes one key, which may fail.
func put(s *store.Store, key string, value []byte) error {
	var b store.Batch
	b.Put(key, value)
	_, err := s.Apply(context.Background(), &b)
	return err
}

func get(t testing.TB, s *store.Store, key string) (string, bool) {
	t.Helper()
	item, ok, err := s.Get(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(item.Value), ok
}

// wantKind checks an error's kind and that it names the place and the mend.
func wantKind(t testing.TB, err, kind error, place, mend string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), mend) {
		t.Errorf("error %v\nwant %v with %q and %q", err, kind, place, mend)
	}
}

// TestSQLiteTime: by a clock of the test's own, a key is there until its time
// and not after; what is gone is swept in steps, ten minutes later; a watch
// that comes after that and before is told.
func TestSQLiteTime(t *testing.T) {
	file := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := testkit.Must(store.Open(context.Background(), file, ""))(t)
		defer s.Close()
		v := apply(t, s, func(b *store.Batch) { b.Put("stays", nil); b.PutFor("k", []byte("x"), time.Minute) })
		time.Sleep(time.Minute - time.Microsecond)
		if _, ok := get(t, s, "k"); !ok {
			t.Error("k is gone before its time")
		}
		time.Sleep(time.Microsecond)
		if _, ok := get(t, s, "k"); ok {
			t.Error("k is there after its time")
		}
		const n = 1000
		apply(t, s, func(b *store.Batch) {
			for i := range n {
				b.PutFor(fmt.Sprintf("many/%d", i), nil, time.Second)
			}
		})
		time.Sleep(5 * time.Minute)
		apply(t, s, func(b *store.Batch) { b.Put("stays", nil) })
		if got := store.Rows(s); got != n+2 {
			t.Errorf("%d rows are kept, want %d: nobody who watches has had ten minutes", got, n+2)
		}
		time.Sleep(10 * time.Minute)
		var rows []int
		for range 6 {
			apply(t, s, func(b *store.Batch) { b.Put("stays", nil) })
			rows = append(rows, store.Rows(s))
		}
		if got, want := fmt.Sprint(rows), "[746 490 234 1 1 1]"; got != want {
			t.Errorf("rows after each write = %s, want %s", got, want)
		}
		for c, err := range s.Watch(context.Background(), "", v) {
			if !errors.Is(err, store.ErrLagged) {
				t.Errorf("Watch from before = %+v, %v; want %v", c, err, store.ErrLagged)
			}
			break
		}
		for c, err := range s.Watch(context.Background(), "", 0) {
			if err != nil || c.Key != "stays" {
				t.Errorf("Watch from the start = %+v, %v; want stays", c, err)
			}
			break
		}
	})
}

// TestSQLiteSlowWatch: a watch of what does not change is not left behind by
// all the rest that does.
func TestSQLiteSlowWatch(t *testing.T) {
	file := storetest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := testkit.Must(store.Open(context.Background(), file, ""))(t)
		defer s.Close()
		store.SetKeep(s, 2*time.Second)
		told := make(chan store.Change)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		watching := s.Watch(ctx, "quiet/", 0)
		go func() {
			defer close(told)
			for c, err := range watching {
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				told <- c
			}
		}()
		for i := range 5 {
			apply(t, s, func(b *store.Batch) { b.PutFor(fmt.Sprintf("loud/%d", i), nil, time.Second) })
			time.Sleep(4 * time.Second)
		}
		apply(t, s, func(b *store.Batch) { b.Put("quiet/1", nil) })
		if c := <-told; c.Key != "quiet/1" {
			t.Errorf("the watch told %+v", c)
		}
		cancel()
		<-told
	})
}

// hold begins a transaction that has the lock, as another program would.
func hold(t testing.TB, driver, address string, statements ...string) (release func()) {
	t.Helper()
	db := testkit.Must(sql.Open(driver, address))(t)
	ctx := context.Background()
	conn := testkit.Must(db.Conn(ctx))(t)
	for _, s := range statements {
		testkit.Must(conn.ExecContext(ctx, s))(t)
	}
	return func() {
		if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			t.Error(err)
		}
		conn.Close()
		db.Close()
	}
}

func TestSQLiteLocked(t *testing.T) {
	file := storetest.SQLite(t)
	s := storetest.Open(t, file)
	lock := func() func() { return hold(t, "sqlite", file, "BEGIN IMMEDIATE") }
	locked(t, s, lock)
	defer lock()()
	store.SetWait(s, 10*time.Millisecond)
	wantKind(t, put(s, "k", nil), store.ErrBusy, file, "try again")
}

func TestPostgresLocked(t *testing.T) {
	address := storetest.Postgres(t)
	lock := func() func() { return hold(t, "pgx", address, "BEGIN", "UPDATE ken_head SET version = version") }
	locked(t, storetest.Open(t, address), lock)
	s := storetest.Open(t, address+"&lock_timeout=10")
	defer lock()()
	wantKind(t, put(s, "k", nil), store.ErrBusy, s.Place(), "try again")
}

// locked: while another process holds the lock, reads go on, and those who
// wait to write can give up for certain.
func locked(t *testing.T, s *store.Store, lock func() (unlock func())) {
	apply(t, s, func(b *store.Batch) { b.Put("k", []byte("1")) })
	unlock := lock()
	waits := make(chan error)
	go func() { waits <- put(s, "waits", nil) }()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var b store.Batch
	b.Put("k", []byte("2"))
	b.Put("withdrawn", nil)
	if _, err := s.Apply(ctx, &b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Apply = %v, want %v", err, context.DeadlineExceeded)
	}
	if v, _ := get(t, s, "k"); v != "1" {
		t.Errorf("k = %q with the lock held, want 1", v)
	}
	unlock()
	if err := <-waits; err != nil {
		t.Errorf("the Apply that waited = %v", err)
	}
	apply(t, s, func(b *store.Batch) { b.Put("last", nil) })
	if _, ok := get(t, s, "withdrawn"); ok {
		t.Error("a batch was applied after its caller was told that it was not")
	}
}

// TestSQLiteFull: a full disk is named, nothing of the batch is there, and
// after making room all goes on.
func TestSQLiteFull(t *testing.T) {
	file := storetest.SQLite(t)
	s := storetest.Open(t, file)
	apply(t, s, func(b *store.Batch) { b.Put("k", nil) })
	testkit.OK(t, store.SQL(s, "PRAGMA max_page_count = 32"))
	var b store.Batch
	b.Put("small", nil)
	b.Put("large", make([]byte, 1<<20))
	_, err := s.Apply(context.Background(), &b)
	wantKind(t, err, store.ErrFull, file, "make room")
	if _, ok := get(t, s, "small"); ok {
		t.Error("a part of the batch is there")
	}
	apply(t, s, func(b *store.Batch) { b.Put("k", []byte("still")) })
	testkit.OK(t, store.SQL(s, "PRAGMA max_page_count = 100000"))
	if _, err := s.Apply(context.Background(), &b); err != nil {
		t.Errorf("Apply with room = %v", err)
	}
}

// TestSQLiteFiles: files are the owner's alone, and what is no store of ours
// is left as it is.
func TestSQLiteFiles(t *testing.T) {
	dir := t.TempDir()
	s := testkit.Must(store.Open(context.Background(), "", dir))(t)
	apply(t, s, func(b *store.Batch) { b.Put("k", nil) })
	// A power cut loses nothing: 2 is FULL.
	if mode, sync := store.Pragma(s, "journal_mode"), store.Pragma(s, "synchronous"); mode != "wal" || sync != "2" {
		t.Errorf("journal_mode = %s, synchronous = %s; want wal, 2", mode, sync)
	}
	for _, name := range []string{"ken.db", "ken.db-wal", "ken.db-shm"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info.Mode(), err)
		}
	}
	testkit.OK(t, s.Close())
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("the last Close left %v, want the file alone", left)
	}
	s = testkit.Must(store.Open(context.Background(), "", dir))(t)
	testkit.OK(t, os.Rename(filepath.Join(dir, "ken.db"), filepath.Join(dir, "moved")))
	wantKind(t, put(s, "k", nil), store.ErrUnavailable, "removed or replaced", "start again")
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	garbage := filepath.Join(dir, "garbage")
	text := strings.Repeat("this is not a database ", 500)
	testkit.OK(t, os.WriteFile(garbage, []byte(text), 0o600))
	_, err := store.Open(context.Background(), "garbage", dir)
	wantKind(t, err, store.ErrDamaged, garbage, "backup")
	if got, _ := os.ReadFile(garbage); string(got) != text {
		t.Error("a file that is no store was changed")
	}

	other := filepath.Join(dir, "other.db")
	db := testkit.Must(sql.Open("sqlite", other))(t)
	defer db.Close()
	testkit.Must(db.Exec("CREATE TABLE theirs (x)"))(t)
	_, err = store.Open(context.Background(), other, "")
	wantKind(t, err, store.ErrDamaged, other, "name another file")

	_, err = store.Open(context.Background(), garbage+"/below/ken.db", "")
	wantKind(t, err, store.ErrUnavailable, garbage, "can be written")
}

// TestMailSQLite: a store in a file has no messages, and says so.
func TestMailSQLite(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite(t))
	if err := s.Send(t.Context(), store.Mail{To: "b"}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Send = %v", err)
	}
	if err := s.Receive(t.Context(), "b", nil, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Receive = %v", err)
	}
}
