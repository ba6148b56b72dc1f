package approval_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// inTime is a test by a clock of its own, with a desk on a store. That is SQLite: a
// server's clock cannot be moved.
func inTime(file string, c approval.Config, do func(t *testing.T, d *approval.Desk)) func(t *testing.T) {
	return func(t *testing.T) {
		s := testkit.Must(store.Open(context.Background(), file, ""))(t)
		defer s.Close()
		do(t, newDesk(t, s, c))
	}
}

// TestExpiry: a question waits its time, to the microsecond; then it is expired
// and not denied, cannot be answered, and the call is asked about again.
func TestExpiry(t *testing.T) {
	synctest.Test(t, inTime(storetest.SQLite(t), approval.Config{}, func(t *testing.T, d *approval.Desk) {
		q := about(callOf(`{}`))
		q.For = time.Minute
		first := ask(t, d, q)
		time.Sleep(time.Minute - time.Microsecond)
		wantState(t, "before its time", d, first.ID, approval.Pending)
		time.Sleep(time.Microsecond)
		got, err := d.Get(ctx, first.ID)
		if err != nil || got.State != approval.Expired || capability.KindOf(got.Err()) != capability.Unapproved {
			t.Errorf("after its time = %s, %v, %v; want expired, unapproved", got.State, err, got.Err())
		}
		fails(d.Settle(ctx, first.ID, yes(approval.Once)))(t, approval.ErrExpired)
		wantList(t, d, 1, approval.Expired)
		with := q
		with.Again = first.ID
		if got := ask(t, d, with); got.ID != first.ID || got.State != approval.Expired {
			t.Errorf("the same call with its ticket = %s %s", got.ID, got.State)
		}
		second := ask(t, d, q)
		if second.ID == first.ID || second.State != approval.Pending {
			t.Errorf("asked anew = %s %s", second.ID, second.State)
		}
	}))
}

// TestWait: a waiting caller learns of an answer and of the expiry; the end of its
// own context ends the wait too.
func TestWait(t *testing.T) {
	synctest.Test(t, inTime(storetest.SQLite(t), approval.Config{}, func(t *testing.T, d *approval.Desk) {
		q := about(callOf(`{}`))
		q.For = 20 * time.Second
		wait := func(ctx context.Context, id string) <-chan string {
			said := make(chan string, 1)
			go func() {
				got, err := d.Wait(ctx, id)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				said <- string(got.State)
			}()
			return said
		}
		first := ask(t, d, q)
		said := wait(ctx, first.ID)
		canceled, cancel := context.WithCancel(ctx)
		gaveUp := wait(canceled, first.ID)
		time.Sleep(10 * time.Second)
		select {
		case s := <-said:
			t.Fatalf("Wait = %s before there is an answer", s)
		default:
		}
		cancel()
		if s := <-gaveUp; s != "" {
			t.Errorf("Wait that was ended = %s", s)
		}
		settle(t, d, first.ID, no(approval.Once))
		if s := <-said; s != "denied" {
			t.Errorf("Wait = %s, want denied", s)
		}
		if s := <-wait(ctx, first.ID); s != "denied" {
			t.Errorf("Wait for what is settled = %s", s)
		}
		start := time.Now()
		second := ask(t, d, q)
		if s := <-wait(ctx, second.ID); s != "expired" || time.Since(start) != 20*time.Second {
			t.Errorf("Wait = %s after %v, want expired after 20 s", s, time.Since(start))
		}
		fails(d.Wait(ctx, "nonesuch"))(t, approval.ErrNoTicket)
	}))
}

// TestGrantTimes: each scope ends when it says; what is over can be looked up
// for a while.
func TestGrantTimes(t *testing.T) {
	conf := approval.Config{OnceFor: time.Minute, SessionFor: time.Hour, AlwaysFor: 2 * time.Hour, Retain: 24 * time.Hour}
	tests := []struct {
		scope approval.Scope
		holds time.Duration
	}{{approval.Once, time.Minute}, {approval.Session, time.Hour}, {approval.Until, 30 * time.Minute}, {approval.Always, 2 * time.Hour}}
	for _, test := range tests {
		synctest.Test(t, inTime(storetest.SQLite(t), conf, func(t *testing.T, d *approval.Desk) {
			call := callOf(`{}`)
			a := yes(test.scope)
			if test.scope == approval.Until {
				a.Until = time.Now().Add(test.holds)
			}
			ticket := settle(t, d, ask(t, d, about(call)).ID, a)
			check := func(when string, want int) {
				t.Helper()
				held, err := d.Held(ctx, approval.Filter{Tenant: "acme"})
				if got := grantsFor(t, d, call); len(got) != want || len(held) != want || err != nil {
					t.Errorf("%s, %s: Grants = %d, Held = %d, %v; want %d", test.scope, when, len(got), len(held), err, want)
				}
			}
			time.Sleep(test.holds - time.Microsecond)
			check("before its end", 1)
			time.Sleep(time.Microsecond)
			check("at its end", 0)
			fails(d.Consume(ctx, ticket.Grant))(t, approval.ErrEnded)
			time.Sleep(23 * time.Hour)
			if _, err := d.Get(ctx, ticket.ID); err != nil {
				t.Errorf("%s: Get a day later = %v", test.scope, err)
			}
			time.Sleep(48 * time.Hour)
			fails(d.Get(ctx, ticket.ID))(t, approval.ErrNoTicket)
		}))
	}
}

// TestQuietFolder: "do not ask again" holds in the folder of the call, as grants do.
func TestQuietFolder(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite(t))
	here, there := newDesk(t, s, approval.Config{Folder: "/here"}), newDesk(t, s, approval.Config{Folder: "/there"})
	q := about(callOf(`{}`))
	denied := settle(t, here, ask(t, here, q).ID, no(approval.Session))
	if got := ask(t, here, q); got.ID != denied.ID || got.State != approval.Denied {
		t.Errorf("in the same folder = %s", got.State)
	}
	if got := ask(t, there, q); got.State != approval.Pending {
		t.Errorf("in another folder = %s", got.State)
	}
}

// TestClockMovedBack: tickets and grants that have ended stay ended when the
// clock is set back, whether they were seen after their end or only something
// else was written then. A later question stays open for its full time.
func TestClockMovedBack(t *testing.T) {
	for _, seen := range []bool{true, false} {
		d, clock := fresh(t)
		q := about(callOf(`{"n":1}`))
		q.For = time.Hour
		old := ask(t, d, q)
		held := callOf(`{"n":2}`)
		held.Action = "pull"
		granted := settle(t, d, ask(t, d, about(held)).ID, yes(approval.Session))

		clock.advance(31 * 24 * time.Hour)
		if seen {
			wantState(t, "a month later", d, old.ID, approval.Expired)
			wantGrants(t, "a month later", d, held, 0)
		} else {
			other := callOf(`{}`)
			other.Target = "tool:other"
			ask(t, d, about(other))
		}
		clock.advance(-31 * 24 * time.Hour)

		if got, err := d.Settle(ctx, old.ID, yes(approval.Once)); !errors.Is(err, approval.ErrExpired) || got.State != approval.Expired {
			t.Errorf("seen %v: Settle after the clock went back = %s, %v; want expired", seen, got.State, err)
		}
		wantGrants(t, "after the clock went back", d, held, 0)
		fails(d.Consume(ctx, granted.Grant))(t, approval.ErrEnded)
		wantHeld(t, d, 0)
		q.Call = callOf(`{"n":3}`)
		next := ask(t, d, q)
		clock.advance(time.Hour - time.Second)
		wantState(t, "a new question", d, next.ID, approval.Pending)
		clock.advance(time.Second)
		wantState(t, "a new question", d, next.ID, approval.Expired)
		clock.advance(-time.Hour)
		fails(d.Settle(ctx, next.ID, yes(approval.Once)))(t, approval.ErrExpired)
	}
}

// TestTimesAreAskedForAnew: how long a question waits is what is said when it is
// asked; a zero, and what makes no sense, is the usual.
func TestTimesAreAskedForAnew(t *testing.T) {
	times, c := approval.Times{}, newClock()
	d := newDesk(t, storetest.Open(t, storetest.SQLite(t)), approval.Config{For: time.Second, Now: c.Now, Times: func() approval.Times { return times }})
	for i, tt := range []struct{ says, want time.Duration }{{0, 24 * time.Hour}, {time.Minute, time.Minute}, {-1, 24 * time.Hour}} {
		times.For = tt.says
		got := ask(t, d, approval.Question{Call: callOf(`{"n":"` + string(rune('a'+i)) + `"}`)})
		if waits := got.Expires.Sub(got.Asked); waits != tt.want {
			t.Errorf("with %v a question waits %v, want %v", tt.says, waits, tt.want)
		}
	}
}
