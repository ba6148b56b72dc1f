package review_test

import (
	"errors"
	"testing"

	"ken/capability"
	"ken/internal/govern/review"
	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// TestOutage: without its server everything that needs review is off, also what
// was just seen on; what is said meanwhile holds at once when it is back.
func TestOutage(t *testing.T) {
	o := storetest.NewOutage(t)
	x, a := base()
	m := must(review.Of(x, []*capability.Capability{a}))
	book := bookOf(m)
	d := newDesk(t, storetest.Open(t, o.Address), review.Config{})
	beside := newDesk(t, storetest.Open(t, o.Beside), review.Config{})
	enable(t, d, m)
	check := func() error { return d.Check(ctx, pia.Tenant, book, a) }
	if err := check(); err != nil {
		t.Fatal(err)
	}
	o.Cut() // new sessions can be opened: callers notice nothing
	if err := check(); err != nil {
		t.Errorf("Check after its session was ended = %v", err)
	}
	shown := status(t, d, m).Shown
	for round := range 3 {
		o.Down()
		wantKind(t, check(), capability.Unavailable, nil, "is disabled", "cannot read whether it was accepted")
		on := d.Switches(ctx, pia.Tenant)
		if on.State(m) != review.Unknown || !errors.Is(on.Err(), store.ErrUnavailable) {
			t.Errorf("State = %s, %v; want unknown", on.State(m), on.Err())
		}
		if st, err := d.Status(ctx, pia.Tenant, m); err == nil || st.State == review.Enabled {
			t.Errorf("Status = %s, %v; want an error", st.State, err)
		}
		_, err := d.Disable(ctx, m.Key(), yes(""))
		wantKind(t, err, capability.Unavailable, store.ErrUnavailable, "may still be enabled")
		_, err = d.Enable(ctx, m, shown, yes(""))
		wantKind(t, err, capability.Unavailable, store.ErrUnavailable)
		if round == 1 {
			if _, err := beside.Disable(ctx, m.Key(), yes("meanwhile")); err != nil {
				t.Fatal(err)
			}
		}
		o.Up()
		if round == 0 {
			if err := check(); err != nil {
				t.Errorf("Check afterwards = %v, want it on", err)
			}
			continue
		}
		wantKind(t, check(), capability.Denied, nil, "disabled it")
	}
	enable(t, d, m)
	if err := check(); err != nil {
		t.Errorf("Check after another word = %v", err)
	}
}

// TestOutageDisable: a word that was taken while the server ended the session is
// there once, and everybody sees it.
func TestOutageDisable(t *testing.T) {
	o := storetest.NewOutage(t)
	x, a := base()
	m := must(review.Of(x, []*capability.Capability{a}))
	d := newDesk(t, storetest.Open(t, o.Address), review.Config{})
	enable(t, d, m)
	release := o.Hold()
	said := make(chan error, 1)
	go func() {
		_, err := d.Disable(ctx, m.Key(), yes(""))
		said <- err
	}()
	o.Await(storetest.Waits)
	o.Cut()
	o.Await(storetest.Waits) // with another session
	release()
	if err := <-said; err != nil {
		t.Fatalf("Disable = %v", err)
	}
	beside := newDesk(t, storetest.Open(t, o.Beside), review.Config{})
	for _, desk := range []*review.Desk{d, beside} {
		wantKind(t, desk.Check(ctx, pia.Tenant, bookOf(m), a), capability.Denied, nil, "disabled it")
	}
}
