package store_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"ken/internal/store"
	"ken/internal/testkit"
)

// TestConnectError: a server that is away is said once, however often it was tried.
func TestConnectError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, err = pgconn.Connect(t.Context(), "postgres://ada:hunter2@"+address+"/x?sslmode=prefer")
	got := store.ConnectError(err)
	if text := got.Error(); strings.Count(text, "refused") != 1 || strings.Contains(text, "\n") || !strings.Contains(text, address) || strings.Contains(text, "ada") {
		t.Errorf("Connect = %q, want the cause once and no user", text)
	}
	var connecting *pgconn.ConnectError
	if !errors.As(got, &connecting) || !errors.Is(got, syscall.ECONNREFUSED) {
		t.Errorf("Connect = %v, which lost its cause", got)
	}
	if other := errors.New("other"); store.ConnectError(other) != other || store.ConnectError(nil) != nil {
		t.Error("Connect changes an error that is none of a connection")
	}
}

// TestPoolerError: that a pooler answers instead of the server is said, with what to do.
func TestPoolerError(t *testing.T) {
	l := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := pgproto3.NewBackend(c, c)
			if _, err := b.ReceiveStartupMessage(); err == nil {
				b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: lock_timeout"})
				_ = b.Flush()
			}
			c.Close()
		}
	}()
	_, err := pgconn.Connect(t.Context(), "postgres://ada:hunter2@"+l.Addr().String()+"/x?sslmode=disable")
	got := store.ConnectError(err)
	if text := got.Error(); !strings.Contains(text, "PgBouncer") || !strings.Contains(text, "lock_timeout") || !strings.Contains(text, "name the PostgreSQL server itself") || strings.Contains(text, "hunter2") {
		t.Errorf("Connect = %q, want that a pooler answers", text)
	}
	if store.PoolerError(errors.New("other")) != nil {
		t.Error("Pooler takes any error for a pooler's")
	}
}
