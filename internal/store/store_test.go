package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"go.uber.org/goleak"

	"ken/internal/store"
	"ken/internal/testkit/storetest"
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

func TestSQLite(t *testing.T) { storetest.Run(t, storetest.SQLite) }

func TestPostgres(t *testing.T) {
	if os.Getenv("KEN_TEST_POSTGRES") == "" {
		t.Skip("KEN_TEST_POSTGRES is not set: run make test-postgres")
	}
	storetest.Run(t, storetest.Postgres)
}
