package approval_test

import (
	"errors"
	"sync"
	"testing"

	"ken/internal/govern/approval"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// twoDesks are two desks of one store, as on two replicas.
func twoDesks(t *testing.T, c approval.Config) (a, b *approval.Desk, s *store.Store) {
	t.Helper()
	address := storetest.Address(t)
	s = storetest.Open(t, address)
	return newDesk(t, s, c), newDesk(t, storetest.Open(t, address), c), s
}

// TestKnownIsChecked: what a desk knows may be out of date, and then neither a question
// is asked nor a grant used on that basis.
func TestKnownIsChecked(t *testing.T) {
	few := func() int { return 100 }
	a, b, _ := twoDesks(t, approval.Config{Pending: few})
	call := callOf(`{}`)
	if _, known := a.Known(requestOf(t, call)); known {
		t.Error("a desk that has read nothing knows the grants")
	}
	grantsFor(t, a, call)
	if grants, known := a.Known(requestOf(t, call)); !known || len(grants) != 0 {
		t.Errorf("Known = %v, %v; want none, and known", grants, known)
	}
	// The other desk is asked and answers: the first must not ask again.
	given := settle(t, b, ask(t, b, about(call)).ID, yes(approval.Once))
	if grants, known := a.Known(requestOf(t, call)); !known || len(grants) != 0 {
		t.Errorf("Known = %v, %v; want what it was", grants, known)
	}
	if got := ask(t, a, about(call)); got.ID != given.ID || got.State != approval.Granted {
		t.Errorf("Ask = %s %s, want the ticket %s that was granted", got.ID, got.State, given.ID)
	}
	// The other desk uses the grant that the first has just read.
	if len(grantsFor(t, a, call)) != 1 {
		t.Fatal("the grant is not there")
	}
	testkit.Must(b.Consume(ctx, given.Grant))(t)
	fails(a.Consume(ctx, given.Grant))(t, approval.ErrEnded)
	// A question that was asked here may be answered: it is read.
	asked := ask(t, a, about(call))
	if asked.ID == given.ID || asked.Before == nil || asked.Before.Ticket != given.ID {
		t.Errorf("Ask = %+v, want a new ticket that knows the earlier one", asked)
	}
	if _, known := a.Known(requestOf(t, call)); known {
		t.Error("the grants count as known although the question is open")
	}
	if got, err := a.Opened(ctx, asked.ID); err != nil || got.ID != asked.ID || len(got.Offers) == 0 {
		t.Errorf("Opened = %+v, %v", got, err)
	}
	settle(t, b, asked.ID, yes(approval.Once))
	if got, err := a.Opened(ctx, asked.ID); err != nil || got.State != approval.Granted {
		t.Errorf("Opened a second time = %s, %v; want it as it is", got.State, err)
	}
}

// TestSpend: a grant for one call is used in exactly one of the batches that use it, and
// nothing else of the others is written.
func TestSpend(t *testing.T) {
	a, b, s := twoDesks(t, approval.Config{})
	call := callOf(`{}`)
	for round := range rounds(10) {
		given := settle(t, a, ask(t, a, about(call)).ID, yes(approval.Once))
		var all sync.WaitGroup
		used := make([]bool, 8)
		spends := make([]*approval.Spending, len(used))
		for i := range spends {
			d, ok := []*approval.Desk{a, b}[i%2], false
			grantsFor(t, d, call)
			if spends[i], ok = d.Spend(given.Grant); !ok {
				t.Fatalf("round %d: Spend of a grant that was just read = false", round)
			}
		}
		for i, spend := range spends {
			all.Go(func() {
				var batch store.Batch
				batch.Put(store.Key("effect", given.ID, string(rune('a'+i))), nil)
				if err := spend.Add(&batch); err != nil {
					t.Error(err)
				}
				version, err := s.Apply(ctx, &batch)
				conflict, changed := errors.AsType[*store.Conflict](err)
				switch {
				case err == nil:
					used[i] = true
					spend.Done(version)
				case !changed || !spend.Failed(conflict):
					t.Errorf("round %d: Apply = %v, want a conflict about the grant", round, err)
				}
			})
		}
		all.Wait()
		n := 0
		for _, u := range used {
			if u {
				n++
			}
		}
		effects := 0
		for _, err := range s.Scan(ctx, store.Key("effect", given.ID)+"/", store.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			effects++
		}
		if n != 1 || effects != 1 {
			t.Errorf("round %d: the grant was used %d times, with %d effects; want 1", round, n, effects)
		}
		if _, ok := a.Spend(given.Grant); ok && len(grantsFor(t, a, call)) != 0 {
			t.Errorf("round %d: the grant can be spent again", round)
		}
		if got, err := b.Get(ctx, given.ID); err != nil || got.Ended == nil || got.Ended.How != "spent" {
			t.Errorf("round %d: the ticket says %+v, %v; want spent", round, got.Ended, err)
		}
	}
	session := settle(t, a, ask(t, a, about(call)).ID, yes(approval.Session))
	grantsFor(t, a, call)
	if _, ok := a.Spend(session.Grant); ok {
		t.Error("Spend of a grant for a session = true")
	}
}

// TestAskUnless: a call that is known already is not asked about.
func TestAskUnless(t *testing.T) {
	a, _, s := twoDesks(t, approval.Config{})
	q := about(callOf(`{}`))
	q.Unless = store.Key("effect", "x")
	var batch store.Batch
	batch.Put(q.Unless, nil)
	testkit.Must(s.Apply(ctx, &batch))(t)
	if got, err := a.Ask(ctx, q); !errors.Is(err, approval.ErrHappened) {
		t.Errorf("Ask = %+v, %v; want %v", got, err, approval.ErrHappened)
	}
	if n, err := a.Waiting(ctx); err != nil || n != 0 {
		t.Errorf("Waiting = %d, %v; want 0", n, err)
	}
	q.Unless = store.Key("effect", "y")
	ask(t, a, q)
}
