package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/store/storetest"
)

// TestPendingIsBounded: a model that asks again and again, in sessions of any
// name, is refused at some point, and what is answered or has expired makes room.
func TestPendingIsBounded(t *testing.T) {
	c := newClock()
	d := newDesk(t, storetest.Open(t, storetest.Address(t)), approval.Config{Now: c.Now, For: time.Hour})
	ask := func(i int, text string) (approval.Ticket, error) {
		call := callOf(fmt.Sprintf(`{"n": %d, "text": %q}`, i, text))
		call.Session = fmt.Sprint("s", i)
		return d.Ask(ctx, about(call))
	}
	full := func(err error) bool {
		return capability.KindOf(err) == capability.Unavailable && strings.Contains(err.Error(), "wait for an answer") && strings.Contains(err.Error(), "approval.wait")
	}
	var first approval.Ticket
	for i := range 256 {
		got, err := ask(i, "")
		if err != nil {
			t.Fatal(i, err)
		}
		if i == 0 {
			first = got
		}
	}
	if _, err := ask(256, ""); !full(err) {
		t.Errorf("one too many: %v", err)
	}
	if again, err := ask(0, ""); err != nil || again.ID != first.ID {
		t.Errorf("a question that waits already: %v", err)
	}
	other := about(callOf(`{}`))
	other.Call.Target = "tool:other"
	if _, err := d.Ask(ctx, other); err != nil {
		t.Errorf("about another capability: %v", err)
	}
	if _, err := d.Settle(ctx, first.ID, no(approval.Once)); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(256, ""); err != nil {
		t.Errorf("after an answer: %v", err)
	}
	if _, err := ask(257, ""); !full(err) {
		t.Errorf("one too many again: %v", err)
	}
	c.advance(2 * time.Hour)
	big := strings.Repeat("x", 600<<10)
	n := 0
	for ; n < 100; n++ {
		if _, err := ask(300+n, big); full(err) {
			break
		} else if err != nil {
			t.Fatal(n, err)
		}
	}
	if n < 10 || n > 27 {
		t.Errorf("%d large questions fit", n)
	}
	if list, err := d.List(ctx, approval.Filter{Tenant: ann.Tenant, States: []approval.State{approval.Pending}}); err != nil || len(list) != n {
		t.Errorf("%d wait, %v, want %d", len(list), err, n)
	}
}
