package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"go.uber.org/goleak"

	"ken/internal/store"
	"ken/internal/testkit"
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
var children = map[string]func(address string){"migrate": migrateForever, "open": openOnce, "hammer": hammer}

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
		err = put(s, "k", nil)
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
	_ = storetest.Postgres(t) // skips all at once where there is no server
	storetest.Run(t, storetest.Postgres)
}

// hammer writes from several goroutines until its input ends.
func hammer(address string) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := store.Open(ctx, address, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				var b store.Batch
				b.Put(fmt.Sprintf("%d/%d/%d", os.Getpid(), worker, i%50), []byte("x"))
				if _, err := s.Apply(ctx, &b); err != nil && ctx.Err() == nil {
					fmt.Println(err)
					return
				}
			}
		})
	}
	fmt.Println("hammering")
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	workers.Wait()
}

func TestSQLiteFair(t *testing.T)   { fair(t, storetest.SQLite) }
func TestPostgresFair(t *testing.T) { fair(t, storetest.Postgres) }

// fair: beside two processes that write without end, a third one gets on.
func fair(t *testing.T, fresh func(testing.TB) string) {
	testkit.CI(t, "processes that write without end")
	address := fresh(t)
	s := storetest.Open(t, address)
	for range 2 {
		cmd := child(t, "hammer", address)
		in, inErr := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		testkit.OK(t, errors.Join(inErr, outErr, cmd.Start()))
		printed := bufio.NewReader(out)
		if line, err := printed.ReadString('\n'); line != "hammering\n" {
			t.Fatalf("the other process printed %q, %v", line, err)
		}
		defer func() {
			in.Close()
			if left, err := io.ReadAll(printed); len(left) > 0 || err != nil {
				t.Errorf("the other process printed %q, %v", left, err)
			}
			_ = cmd.Wait() // what it printed says more
		}()
	}
	for i := range 100 { // this ends, or it is left out
		apply(t, s, func(b *store.Batch) { b.Put(fmt.Sprint("own/", i), nil) })
	}
}
