package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestLargePendingIsBounded: a model that asks for large calls again and again, in
// sessions of any name and for any capability, is denied at some point. What has
// been answered or has expired makes room.
func TestLargePendingIsBounded(t *testing.T) {
	testkit.CI(t, "asks with calls of megabytes")
	c := newClock()
	d := newDesk(t, storetest.Open(t, storetest.SQLite(t)), approval.Config{Now: c.Now, For: time.Hour})
	big := strings.Repeat("x", 4<<20)
	ask := func(i int) (approval.Ticket, error) {
		call := callOf(fmt.Sprintf(`{"n": %d, "text": %q}`, i, big))
		call.Session, call.Target = fmt.Sprint("s", i), capability.ID(fmt.Sprint("tool:t", i%3))
		return d.Ask(ctx, about(call))
	}
	fill := func(from int) (first approval.Ticket, n int) {
		t.Helper()
		for ; n < 100; n++ {
			got, err := ask(from + n)
			switch {
			case err == nil && n == 0:
				first = got
			case err == nil:
			case capability.KindOf(err) == capability.Denied && strings.Contains(err.Error(), "larger than 16 MiB") && strings.Contains(err.Error(), "approval.pending"):
				return first, n
			default:
				t.Fatal(n, err)
			}
		}
		return first, n
	}
	first, n := fill(0)
	if n < 2 || n > 4 {
		t.Errorf("%d large questions fit", n)
	}
	if again, err := ask(0); err != nil || again.ID != first.ID {
		t.Errorf("a question that waits already: %v", err)
	}
	settle(t, d, first.ID, no(approval.Once))
	if _, more := fill(100); more != 1 {
		t.Errorf("%d fit after one answer", more)
	}
	c.advance(2 * time.Hour)
	if _, more := fill(200); more != n {
		t.Errorf("%d fit when all have expired, want %d", more, n)
	}
	wantList(t, d, n, approval.Pending)
}
