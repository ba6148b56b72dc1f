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
	m, book, a := small()
	d := newDesk(t, storetest.Open(t, o.Address), review.Config{})
	beside := newDesk(t, storetest.Open(t, o.Beside), review.Config{})
	enable(t, d, m)
	check := func() error { return d.Check(ctx, pia.Tenant, book, a) }
	if err := check(); err != nil {
		t.Fatal(err)
	}
	shown := status(t, d, m).Shown
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
	disable(t, beside, m, yes("meanwhile"))
	o.Up()
	wantKind(t, check(), capability.Denied, nil, "disabled it")
}
