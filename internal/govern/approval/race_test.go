package approval_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
)

// rounds returns how often a race is run: n times, or once in short.
func rounds(n int) int {
	if testing.Short() {
		return 1
	}
	return n
}

// TestOneMoment: whatever many see of one ticket and its grant while it is
// settled and revoked agrees with one moment for each: no reader sees it before,
// and every reader sees it afterwards. There are two desks on two stores of one
// place, so that each knows of the other's writes only through that place.
func TestOneMoment(t *testing.T) {
	a, b, _ := twoDesks(t, approval.Config{})
	desks := []*approval.Desk{a, b}
	for round := range rounds(15) {
		call := callOf(fmt.Sprintf(`{"n":%d}`, round))
		call.Session = fmt.Sprint("s", round)
		ticket := ask(t, desks[0], about(call))
		request := requestOf(t, call)
		// Each is a step of a clock that all share: taken before a call, it
		// is not later than the call's moment; taken after, not earlier.
		var step, settleFrom, settleTo, revokeFrom, revokeTo atomic.Int64
		var wins atomic.Int32
		var winner atomic.Pointer[string]
		type look struct {
			from, to int64
			granted  bool
			by       string
			grants   int
		}
		looks := make([][]look, 4)
		stop := make(chan struct{})
		var lookers, settlers sync.WaitGroup
		for i := range looks {
			lookers.Go(func() {
				d := desks[i%2]
				for n := 0; ; n++ {
					l := look{from: step.Add(1), grants: -1}
					if i < 2 {
						got, err := d.Get(ctx, ticket.ID)
						if err != nil {
							t.Error(err)
							return
						}
						l.granted = got.State == approval.Granted
						if got.Answer != nil {
							l.by = got.Answer.Note
						}
					} else {
						grants, err := d.Grants(ctx, request)
						if err != nil {
							t.Error(err)
							return
						}
						l.grants = len(grants)
					}
					l.to = step.Add(1)
					looks[i] = append(looks[i], l)
					select {
					case <-stop:
						if n > 20 {
							return
						}
					default:
					}
				}
			})
		}
		for i := range 8 {
			settlers.Go(func() {
				a := yes(approval.Session)
				a.Note = fmt.Sprint("settler ", i)
				from := step.Add(1)
				got, err := desks[i%2].Settle(ctx, ticket.ID, a)
				to := step.Add(1)
				switch {
				case err == nil:
					wins.Add(1)
					winner.Store(&a.Note)
					settleFrom.Store(from)
					settleTo.Store(to)
				case !errors.Is(err, approval.ErrSettled):
					t.Error(err)
				case got.Answer == nil:
					t.Error("a loser is not told of the answer")
				}
			})
		}
		settlers.Wait()
		revokeFrom.Store(step.Add(1))
		if err := desks[1].Revoke(ctx, ticket.ID, ann, ""); err != nil {
			t.Error(err)
		}
		revokeTo.Store(step.Add(1))
		close(stop)
		lookers.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d settled the ticket", wins.Load())
		}
		for _, list := range looks {
			for _, l := range list {
				switch {
				case l.grants < 0 && l.granted && l.to < settleFrom.Load(), l.grants > 0 && l.to < settleFrom.Load():
					t.Errorf("seen %+v before it was settled at %d", l, settleFrom.Load())
				case l.grants < 0 && !l.granted && l.from > settleTo.Load():
					t.Errorf("not seen %+v after it was settled at %d", l, settleTo.Load())
				case l.grants == 0 && l.from > settleTo.Load() && l.to < revokeFrom.Load():
					t.Errorf("no grant %+v between %d and %d", l, settleTo.Load(), revokeFrom.Load())
				case l.grants > 0 && l.from > revokeTo.Load():
					t.Errorf("a revoked grant was served: %+v after %d", l, revokeTo.Load())
				case l.granted && l.by != *winner.Load():
					t.Errorf("answered by %s, the winner is %s", l.by, *winner.Load())
				}
			}
		}
	}
}

// TestAskAtOnce: the same question from many has one ticket.
func TestAskAtOnce(t *testing.T) {
	a, b, _ := twoDesks(t, approval.Config{})
	desks := []*approval.Desk{a, b}
	ids := make([]string, 32)
	var done sync.WaitGroup
	for i := range ids {
		done.Go(func() {
			got, err := desks[i%2].Ask(ctx, about(callOf(`{}`)))
			if err != nil {
				t.Error(err)
			}
			ids[i] = got.ID
		})
	}
	done.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("tickets %s and %s for one question", id, ids[0])
		}
	}
	wantList(t, desks[0], 1)
}

// TestAnsweredWhileAsking: while one answer for the session is given, others ask
// what it covers: no question is left open.
func TestAnsweredWhileAsking(t *testing.T) {
	d, _ := fresh(t)
	for round := range rounds(10) {
		session := fmt.Sprint("s", round)
		callIn := func(n int) capability.Call {
			c := callOf(fmt.Sprintf(`{"n":%d}`, n))
			c.Session = session
			return c
		}
		first := ask(t, d, about(callIn(0)))
		var done sync.WaitGroup
		done.Go(func() { settle(t, d, first.ID, yes(approval.Session)) })
		for i := range 12 {
			done.Go(func() {
				if _, err := d.Ask(ctx, about(callIn(i+1))); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		wantList(t, d, 0, approval.Pending)
	}
}
