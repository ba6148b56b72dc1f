package approval_test

import (
	"testing"
	"time"

	"ken/internal/govern/approval"
	"ken/internal/testkit/storetest"
)

// TestTimesAreAskedForAnew: how long a question waits is what is said when it is
// asked; a zero, and what makes no sense, is the usual.
func TestTimesAreAskedForAnew(t *testing.T) {
	times, c := approval.Times{}, newClock()
	d := newDesk(t, storetest.Open(t, storetest.Address(t)), approval.Config{For: time.Second, Now: c.Now, Times: func() approval.Times { return times }})
	for i, tt := range []struct{ says, want time.Duration }{{0, 24 * time.Hour}, {time.Minute, time.Minute}, {-1, 24 * time.Hour}} {
		times.For = tt.says
		got := ask(t, d, approval.Question{Call: callOf(`{"n":"` + string(rune('a'+i)) + `"}`)})
		if waits := got.Expires.Sub(got.Asked); waits != tt.want {
			t.Errorf("with %v a question waits %v, want %v", tt.says, waits, tt.want)
		}
	}
}
