package approval_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
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

// TestSettledOnce: of many who answer a ticket, on two replicas, one settles it, and
// all others are told of that answer. From then on both have its grant, until it is
// revoked.
func TestSettledOnce(t *testing.T) {
	a, b, _ := twoDesks(t, approval.Config{})
	desks := []*approval.Desk{a, b}
	for round := range rounds(15) {
		call := callOf(fmt.Sprintf(`{"n":%d}`, round))
		call.Session = fmt.Sprint("s", round)
		ticket := ask(t, a, about(call))
		answers, wins := make([]string, 8), make([]string, 8)
		var settlers sync.WaitGroup
		for i := range answers {
			settlers.Go(func() {
				answer := yes(approval.Session)
				answer.Note = fmt.Sprint("settler ", i)
				got, err := desks[i%2].Settle(ctx, ticket.ID, answer)
				switch {
				case err == nil:
					wins[i] = answer.Note
				case !errors.Is(err, approval.ErrSettled):
					t.Error(err)
				}
				if answers[i] = "none"; got.Answer != nil {
					answers[i] = got.Answer.Note
				}
				if _, err := desks[i%2].Get(ctx, ticket.ID); err != nil {
					t.Error(err)
				}
				wantGrants(t, "once it is settled", desks[i%2], call, 1)
			})
		}
		settlers.Wait()
		winners := slices.DeleteFunc(wins, func(s string) bool { return s == "" })
		if len(winners) != 1 || slices.ContainsFunc(answers, func(s string) bool { return s != winners[0] }) {
			t.Fatalf("settled by %q, and told of %q; want one, and all told of it", winners, answers)
		}
		if err := b.Revoke(ctx, ticket.ID, ann, ""); err != nil {
			t.Error(err)
		}
		for _, d := range desks {
			wantGrants(t, "once it is revoked", d, call, 0)
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
