package store_test

import (
	"context"
	"errors"
	"testing"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestPostgresCut: sessions that the server has ended, and those in the pool
// that have not noticed, are no failure where new ones can be had; without a
// server everything fails as that, at once, and goes on when it is back.
func TestPostgresCut(t *testing.T) {
	o := storetest.NewOutage(t)
	s := storetest.Open(t, o.Address)
	ctx := context.Background()
	var b store.Batch
	b.Put("k", []byte("v"))
	ways := map[string]func() error{
		"Get": func() error {
			_, ok, err := s.Get(ctx, "k")
			if err == nil && !ok {
				return errors.New("k is not there")
			}
			return err
		},
		"Scan": func() error {
			for _, err := range s.Scan(ctx, "k", store.Range{}) {
				return err
			}
			return errors.New("k is not there")
		},
		"Watch": func() error {
			stop, cancel := context.WithCancel(ctx)
			watching := s.Watch(stop, "k", store.FromNow)
			cancel()
			for _, err := range watching {
				if !errors.Is(err, context.Canceled) {
					return err
				}
			}
			return nil
		},
		"Apply": func() error {
			_, err := s.Apply(ctx, &b)
			return err
		},
		"Apply of nothing": func() error {
			var none store.Batch
			none.Absent("not")
			_, err := s.Apply(ctx, &none)
			return err
		},
	}
	testkit.OK(t, ways["Apply"]())
	for name, do := range ways {
		o.Cut()
		if err := do(); err != nil {
			t.Errorf("%s after its session was ended = %v", name, err)
		}
	}
	o.Down()
	for name, do := range ways {
		if err := do(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s without a server = %v, want %v", name, err, store.ErrUnavailable)
		}
	}
	o.Up()
	for name, do := range ways {
		if err := do(); err != nil {
			t.Errorf("%s afterwards = %v", name, err)
		}
	}
}
