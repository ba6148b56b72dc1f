package pgerror_test

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"ken/internal/pgerror"
)

// TestConnect: a server that is away is said once, however often it was tried.
func TestConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, err = pgconn.Connect(t.Context(), "postgres://ada:hunter2@"+address+"/x?sslmode=prefer")
	got := pgerror.Connect(err)
	if text := got.Error(); strings.Count(text, "refused") != 1 || strings.Contains(text, "\n") || !strings.Contains(text, address) || strings.Contains(text, "ada") {
		t.Errorf("Connect = %q, want the cause once and no user", text)
	}
	var connecting *pgconn.ConnectError
	if !errors.As(got, &connecting) || !errors.Is(got, syscall.ECONNREFUSED) {
		t.Errorf("Connect = %v, which lost its cause", got)
	}
	if other := errors.New("other"); pgerror.Connect(other) != other || pgerror.Connect(nil) != nil {
		t.Error("Connect changes an error that is none of a connection")
	}
}
