package approval_test

import (
	"errors"
	"testing"

	"ken/internal/govern/approval"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// away checks that an error is the store's and says nothing about the consent:
// who took it for an answer would ask a person again, or go on.
func away(t *testing.T, op string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, approval.ErrEnded) || errors.Is(err, approval.ErrNoTicket) {
		t.Errorf("%s without a server = %v, want %v", op, err, store.ErrUnavailable)
	}
}

// TestOutage: without its server a desk gives nothing, not even what it knew;
// when the server is back everything is as it was.
func TestOutage(t *testing.T) {
	o := storetest.NewOutage(t)
	d := newDesk(t, storetest.Open(t, o.Address), approval.Config{})
	beside := newDesk(t, storetest.Open(t, o.Beside), approval.Config{})
	call, other := callOf(`{"n":1}`), callOf(`{"n":2}`)
	granted := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Once))
	pending := ask(t, d, about(other))
	wantGrants(t, "before", d, call, 1)
	o.Down()
	grants, err := d.Grants(ctx, requestOf(t, call))
	if away(t, "Grants", err); len(grants) != 0 {
		t.Errorf("Grants without a server = %d grants", len(grants))
	}
	_, err = d.Consume(ctx, granted.Grant)
	away(t, "Consume", err)
	_, err = d.Settle(ctx, pending.ID, yes(approval.Session))
	away(t, "Settle", err)
	_, err = d.Ask(ctx, about(callOf(`{"n":3}`)))
	away(t, "Ask", err)
	_, err = d.Get(ctx, pending.ID)
	away(t, "Get", err)
	_, err = d.List(ctx, approval.Filter{Tenant: "acme"})
	away(t, "List", err)
	_, err = d.Wait(ctx, pending.ID)
	away(t, "Wait", err)
	away(t, "Revoke", d.Revoke(ctx, granted.ID, ann, ""))
	wantList(t, beside, 2)
	// What happens meanwhile holds from the first moment after it.
	settle(t, beside, pending.ID, yes(approval.Session))
	testkit.OK(t, beside.Revoke(ctx, granted.ID, ann, ""))
	o.Up()
	if got := grantsFor(t, d, call); len(got) != 1 || got[0].ID == granted.Grant {
		t.Errorf("Grants afterwards = %+v, want the one that was given meanwhile", got)
	}
	fails(d.Consume(ctx, granted.Grant))(t, approval.ErrEnded)
}
