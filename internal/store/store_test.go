package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"go.uber.org/goleak"

	"ken/internal/store"
	"ken/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if act, ok := children[os.Getenv("KEN_STORE_CHILD")]; ok {
		act(os.Getenv("KEN_STORE_ADDRESS"))
		return
	}
	status := storetest.Main(m)
	if status == 0 && os.Getenv("KEN_STORETEST_CHILD") == "" {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// children are what this program does when a test starts it again.
var children = map[string]func(address string){"migrate": migrateForever, "open": openOnce, "hammer": hammerChild}

// child starts this program again.
func child(t testing.TB, act, address string) *exec.Cmd {
	t.Helper()
	self := "/proc/self/exe" // also for a user who may not look where it lies
	if _, err := os.Stat(self); err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "KEN_STORE_CHILD="+act, "KEN_STORE_ADDRESS="+address,
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE")) // not a second's sleep at its end
	cmd.Stderr = os.Stderr
	return cmd
}

// openOnce prints how opening and writing went.
func openOnce(address string) {
	s, err := store.Open(context.Background(), address, "")
	if err == nil {
		var b store.Batch
		b.Put("k", nil)
		_, err = s.Apply(context.Background(), &b)
		s.Close()
	}
	for _, kind := range []error{store.ErrReadOnly, store.ErrUnavailable} {
		if errors.Is(err, kind) {
			fmt.Printf("%v | ", kind)
		}
	}
	fmt.Print(err)
}

func TestSQLite(t *testing.T) { storetest.Run(t, sqliteAddress) }

func TestPostgres(t *testing.T) {
	postgresServer(t)
	storetest.Run(t, postgresAddress)
}

func sqliteAddress(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "ken.db") }

func postgresServer(t testing.TB) string {
	server := os.Getenv("KEN_TEST_POSTGRES")
	if server == "" {
		t.Skip("KEN_TEST_POSTGRES is not set: run make test-postgres")
	}
	return server
}

var schemas atomic.Int64

// postgresAddress makes a schema of its own.
func postgresAddress(t testing.TB) string {
	t.Helper()
	server := postgresServer(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("ken_store_%d_%d", os.Getpid(), schemas.Add(1))
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := conn.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
		conn.Close(ctx)
	})
	separator := "?"
	if strings.Contains(server, "?") {
		separator = "&"
	}
	return server + separator + "search_path=" + schema
}
