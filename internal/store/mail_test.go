//go:build unix

package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestPostgresMail: messages of one sender arrive in order, once, and only where they are
// sent to. After the connection broke the receiver is told that some may be lost.
func TestPostgresMail(t *testing.T) {
	address := storetest.Postgres(t)
	w := storetest.NewWire(t, address)
	sender, receiver := storetest.Open(t, address), storetest.Open(t, w.Address)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, lost := make(chan string, 1000), make(chan struct{}, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- receiver.Receive(ctx, "b", func(body []byte) { got <- string(body) }, func() { lost <- struct{}{} })
	}()
	for i := range 200 {
		err := sender.Send(ctx, store.Mail{To: "b", Body: []byte(fmt.Sprint(i))}, store.Mail{To: "c", Body: []byte("not yours")})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		if s := <-got; s != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, s)
		}
	}
	w.Cut()
	// What is sent before the receiver knows that its connection broke may be lost.
	for _, body := range []string{"perhaps", "after"} {
		testkit.OK(t, sender.Send(ctx, store.Mail{To: "b", Body: []byte(body)}))
		if body == "perhaps" {
			<-lost
		}
	}
	s := <-got
	if s == "perhaps" {
		s = <-got
	}
	if s != "after" {
		t.Errorf("after the connection broke: %q", s)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Receive ended with %v", err)
	}
}
