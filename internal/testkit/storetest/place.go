package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ken/internal/testkit"
)

// server names the PostgreSQL server for tests.
const server = "KEN_TEST_POSTGRES"

// Address returns the address of a new and empty store, also for a child process:
// a file of SQLite, or, where KEN_TEST_POSTGRES names a server, a schema there.
// So the tests of what stands on a store are written once and run on both.
func Address(t testing.TB) string {
	t.Helper()
	if os.Getenv(server) != "" && !testing.Short() {
		return Postgres(t)
	}
	return SQLite(t)
}

// SQLite returns the address of a new SQLite file, for a test that only SQLite
// can do: one that moves the store's clock, or looks into its file.
func SQLite(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "ken.db") }

// Postgres returns the address of a new schema, which lasts as long as the test.
// It skips the test where there is no server.
func Postgres(t testing.TB) string {
	t.Helper()
	name := newName()
	administer(t, "CREATE SCHEMA "+name)
	t.Cleanup(func() { administer(t, "DROP SCHEMA "+name+" CASCADE") })
	return withSetting(t, os.Getenv(server), "search_path", name)
}

var names atomic.Int64 // of schemas: tests of one process must not meet

func newName() string {
	return fmt.Sprintf("ken_test_%d_%d", os.Getpid(), names.Add(1))
}

// administer does something as the user that KEN_TEST_POSTGRES names. Each time
// has its own connection: there may be many tests, and connections are few.
func administer(t testing.TB, statements ...string) {
	t.Helper()
	testkit.CI(t, "needs a PostgreSQL server")
	address := os.Getenv(server)
	if address == "" {
		t.Skip(server + " is not set: make ci starts a server")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func withSetting(t testing.TB, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("KEN_TEST_POSTGRES is not a URL: write postgres://USER@/DATABASE?host=DIRECTORY")
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// An Outage is a schema whose way to the server a test can break. The server
// itself ends the sessions, as one does that is shut down, and goes on for
// everybody else.
type Outage struct {
	Address string // of the store
	Beside  string // of the same store, by a way that does not break

	t    testing.TB
	name string // of the schema and of the user that alone reaches it so
}

// NewOutage returns a new and empty place that can be reached. It skips the test
// where there is no server.
func NewOutage(t testing.TB) *Outage {
	t.Helper()
	o := &Outage{t: t, name: newName()}
	administer(t, "CREATE ROLE "+o.name+" LOGIN PASSWORD '"+o.name+"'", "CREATE SCHEMA "+o.name+" AUTHORIZATION "+o.name)
	t.Cleanup(func() {
		administer(t, o.terminate(), "DROP SCHEMA "+o.name+" CASCADE", "DROP ROLE "+o.name)
	})
	o.Beside = withSetting(t, os.Getenv(server), "search_path", o.name)
	u, err := url.Parse(o.Beside)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(o.name, o.name)
	o.Address = u.String()
	return o
}

// terminate ends the sessions and waits until they are gone, for up to 10 s.
func (o *Outage) terminate() string {
	return "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '" + o.name + "'"
}

// Cut ends every session; new ones can be had at once.
func (o *Outage) Cut() { o.t.Helper(); administer(o.t, o.terminate()) }

// Storm ends sessions again and again, some in the middle of what they do, until
// stop, which returns their number.
func (o *Outage) Storm() (stop func() (ended int)) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	conn, err := pgx.Connect(ctx, o.Beside)
	if err != nil {
		o.t.Fatal(err)
	}
	enough, total := make(chan struct{}), make(chan int)
	go func() {
		defer cancel()
		defer conn.Close(ctx)
		sum := 0
		for pause := time.Duration(0); ; pause = (pause + 7*time.Millisecond) % (20 * time.Millisecond) {
			select {
			case <-enough:
				total <- sum
				return
			case <-time.After(pause): // of different lengths, to meet all that they do
			}
			n := 0
			if err := conn.QueryRow(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1", o.name).Scan(&n); err != nil {
				o.t.Error(err)
			}
			sum += n
		}
	}()
	return func() int {
		close(enough)
		return <-total
	}
}

// Down ends every session and lets no new one begin.
func (o *Outage) Down() {
	o.t.Helper()
	administer(o.t, "ALTER ROLE "+o.name+" NOLOGIN", o.terminate())
}

// Up lets sessions begin again.
func (o *Outage) Up() { o.t.Helper(); administer(o.t, "ALTER ROLE "+o.name+" LOGIN") }

// ReadOnly takes from the store's user what it needs to write. The store was
// opened before.
func (o *Outage) ReadOnly() {
	o.t.Helper()
	administer(o.t, "REVOKE INSERT, UPDATE ON "+o.name+".ken_item FROM "+o.name)
}

// Hold makes every write wait, as another process does that holds the store's
// lock, until release. A store must have been opened there.
func (o *Outage) Hold() (release func()) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	conn, err := pgx.Connect(ctx, o.Beside)
	if err == nil {
		_, err = conn.Exec(ctx, "BEGIN; SELECT version FROM ken_head FOR UPDATE")
	}
	if err != nil {
		o.t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		conn.Close(ctx)
		cancel()
	})
	o.t.Cleanup(release)
	return release
}

// The conditions for [Outage.Await].
const (
	Waits   = "wait_event_type = 'Lock'" // for the lock
	Watches = "query LIKE 'LISTEN%'"     // for news
)

// Await returns when a session of the store is as the condition says, about a
// row of pg_stat_activity.
func (o *Outage) Await(condition string) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, o.Beside)
	if err != nil {
		o.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for n := 0; n == 0; {
		err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND "+condition, o.name).Scan(&n)
		if err != nil {
			o.t.Fatalf("no session with %s: %v", condition, err)
		}
	}
}
