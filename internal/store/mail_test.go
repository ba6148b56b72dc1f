package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// TestPostgresMail: messages of one sender arrive in order, once, and only where they are
// sent to. After the connection broke the receiver is told that some may be lost.
func TestPostgresMail(t *testing.T) {
	address := storetest.Postgres(t)
	w, cut := newWire(t, address)
	sender, receiver := storetest.Open(t, address), storetest.Open(t, cut)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got, lost := make(chan string, 1000), make(chan struct{}, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- receiver.Receive(ctx, "b", func(body []byte) { got <- string(body) }, func() { lost <- struct{}{} })
	}()
	next := func() string {
		select {
		case s := <-got:
			return s
		case <-ctx.Done():
			t.Fatal("a message never came")
			return ""
		}
	}
	for i := range 200 {
		err := sender.Send(ctx, store.Mail{To: "b", Body: []byte(fmt.Sprint(i))}, store.Mail{To: "c", Body: []byte("not yours")})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		if s := next(); s != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, s)
		}
	}
	w.cut(false)
	if err := sender.Send(ctx, store.Mail{To: "b", Body: []byte("after")}); err != nil {
		t.Fatal(err)
	}
	if s := next(); s != "after" {
		t.Errorf("after the connection broke: %q", s)
	}
	select {
	case <-lost:
	case <-ctx.Done():
		t.Error("the receiver does not learn that messages may be lost")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Receive ended with %v", err)
	}
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
