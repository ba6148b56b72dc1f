package approval_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"ken/internal/govern/approval"
	"ken/internal/store"
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
	if got := grantsFor(t, d, call); len(got) != 1 {
		t.Fatalf("Grants = %d, want 1", len(got))
	}
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
	if list, err := beside.List(ctx, approval.Filter{Tenant: "acme"}); err != nil || len(list) != 2 {
		t.Errorf("List = %d tickets, %v; want the two of before", len(list), err)
	}
	// What happens meanwhile holds from the first moment after it.
	settle(t, beside, pending.ID, yes(approval.Session))
	if err := beside.Revoke(ctx, granted.ID, ann, ""); err != nil {
		t.Fatal(err)
	}
	o.Up()
	if got := grantsFor(t, d, call); len(got) != 1 || got[0].ID == granted.Grant {
		t.Errorf("Grants afterwards = %+v, want the one that was given meanwhile", got)
	}
	if _, err := d.Consume(ctx, granted.Grant); !errors.Is(err, approval.ErrEnded) {
		t.Errorf("Consume of what was revoked meanwhile = %v", err)
	}
}

// TestOutageCut: sessions that the server has ended are no outage where new
// ones can be had, not even for a writer that waits for the lock.
func TestOutageCut(t *testing.T) {
	o := storetest.NewOutage(t)
	d := newDesk(t, storetest.Open(t, o.Address), approval.Config{})
	granted := settle(t, d, ask(t, d, about(callOf(`{"n":1}`))).ID, yes(approval.Once))
	o.Cut()
	if got := grantsFor(t, d, callOf(`{"n":1}`)); len(got) != 1 {
		t.Errorf("Grants = %d, want 1", len(got))
	}
	release := o.Hold()
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := d.Consume(ctx, granted.Grant); err != nil {
			t.Errorf("Consume = %v", err)
		}
	})
	o.Await(storetest.Waits)
	o.Cut()
	o.Await(storetest.Waits) // again
	release()
	done.Wait()
	if _, err := d.Consume(ctx, granted.Grant); !errors.Is(err, approval.ErrEnded) {
		t.Errorf("a second Consume = %v", err)
	}
}

// TestOutageWait: a caller that waits for an answer keeps waiting through an
// outage, is told nothing meanwhile, and gets the answer given during it.
func TestOutageWait(t *testing.T) {
	o := storetest.NewOutage(t)
	d := newDesk(t, storetest.Open(t, o.Address), approval.Config{})
	beside := newDesk(t, storetest.Open(t, o.Beside), approval.Config{})
	ticket := ask(t, d, about(callOf(`{}`)))
	said := make(chan approval.Ticket, 1)
	var done sync.WaitGroup
	done.Go(func() {
		got, err := d.Wait(ctx, ticket.ID)
		if err != nil {
			t.Errorf("Wait = %v", err)
		}
		said <- got
	})
	o.Await(storetest.Watches)
	o.Down()
	settle(t, beside, ticket.ID, no(approval.Once))
	select {
	case got := <-said:
		t.Errorf("Wait = %s while the server is away", got.State)
	default:
	}
	o.Up()
	if got := <-said; got.State != approval.Denied {
		t.Errorf("Wait = %s, want denied", got.State)
	}
	done.Wait()
}

// TestOutageConsume: while the server ends sessions again and again, many want
// the same grants, from two processes' worth of desks. No grant is used twice,
// and one that nobody was given can still be used, unless its use got through
// unknown to whom.
func TestOutageConsume(t *testing.T) {
	o := storetest.NewOutage(t)
	s := storetest.Open(t, o.Address)
	desks := []*approval.Desk{newDesk(t, s, approval.Config{}), newDesk(t, storetest.Open(t, o.Address), approval.Config{})}
	var grants []string
	for _, id := range askMany(t, desks[0], 25) {
		grants = append(grants, settle(t, desks[0], id, yes(approval.Once)).Grant)
	}
	var mu sync.Mutex
	used, unsure := map[string]int{}, map[string]int{}
	kinds := map[string]int{}
	var done sync.WaitGroup
	stop := o.Storm()
	for i := range 8 {
		done.Go(func() {
			for _, id := range grants {
				_, err := desks[i%2].Consume(ctx, id)
				mu.Lock()
				switch {
				case err == nil:
					used[id]++
				case errors.Is(err, approval.ErrEnded):
				case errors.Is(err, store.ErrUncertain):
					unsure[id]++
				case errors.Is(err, store.ErrUnavailable):
					kinds["unavailable"]++
				default:
					kinds[fmt.Sprint(err)]++
					t.Errorf("Consume = %v", err)
				}
				mu.Unlock()
			}
		})
	}
	done.Wait()
	cuts := stop()
	late := 0
	for _, id := range grants {
		_, err := desks[0].Consume(ctx, id)
		switch {
		case err == nil:
			used[id]++
			late++
		case !errors.Is(err, approval.ErrEnded):
			t.Errorf("Consume afterwards = %v", err)
		}
		if used[id] > 1 || used[id] == 0 && unsure[id] == 0 {
			t.Errorf("grant %s was used %d times, with %d not sure", id, used[id], unsure[id])
		}
	}
	t.Logf("%d sessions ended: %d unavailable, %d not sure, %d of %d grants used afterwards", cuts, kinds["unavailable"], len(unsure), late, len(grants))
}
