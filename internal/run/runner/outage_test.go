package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// during counts its runs and does something in the middle of each.
func during(runs *atomic.Int64, do func()) tool {
	return tool{invoke: func(context.Context, capability.Call) (capability.Result, error) {
		n := runs.Add(1)
		do()
		return capability.Result{Parts: []capability.Part{{Text: fmt.Sprintf("run %d", n)}}}, nil
	}}
}

// TestOutageEffect: the server goes away while a call runs. Its caller gets the
// result, but the end of the call cannot be stored, so the call is not repeated
// without an approval. Without a server nothing runs at all.
func TestOutageEffect(t *testing.T) {
	o := storetest.NewOutage(t)
	var runs atomic.Int64
	r := keyed(t, storetest.Open(t, o.Address), "k", during(&runs, sync.OnceFunc(o.Down)), nil)
	beside := keyed(t, storetest.Open(t, o.Beside), "k", counting(&runs), nil)
	call := callOf("write", `{"text":"a"}`)
	gives(t, r, call, "run 1")
	_, err := r.Invoke(t.Context(), call) // waits until the first has settled
	if e := wantKind(t, err, capability.Unavailable); !errors.Is(e, store.ErrUnavailable) {
		t.Errorf("Invoke() without a server = %v, want the store's error", e)
	}
	if n := r.Load().Unsettled; n != 1 {
		t.Errorf("%d unsettled, want 1", n)
	}
	if _, err := settled(t, beside, call); runs.Load() != 1 {
		t.Fatalf("the other process ran it again: %v", err)
	} else {
		wantKind(t, err, capability.InputNeeded)
	}
	o.Up()
	_, err = r.Invoke(t.Context(), call)
	if runs.Load() != 1 {
		t.Fatalf("%d runs, want one", runs.Load())
	}
	gives(t, r, again(t, call, err), "run 2")
}

// TestOutageUnused: the server goes away between the claim of a call and its start, for so long
// that the claim cannot be removed. The call did not run, so it runs when it is made
// again. Another process does not run it.
func TestOutageUnused(t *testing.T) {
	o := storetest.NewOutage(t)
	var runs atomic.Int64
	short := func(c *Config) { c.Limits = Limits{Record: 300 * time.Millisecond, Lease: time.Minute}.Always }
	r := keyed(t, storetest.Open(t, o.Address), "k", counting(&runs), short)
	other := storetest.Open(t, o.Beside)
	beside := keyed(t, other, "k", counting(&runs), short)
	claimed := func() bool {
		for _, err := range other.Scan(t.Context(), "effect/", store.Range{}) {
			return err == nil
		}
		return false
	}
	r.log.fail = func(rec audit.Record) error {
		if rec.Event != audit.Started {
			return nil
		}
		testkit.Until(func() bool { return claimed() || t.Context().Err() != nil })
		o.Down()
		return errors.New("full")
	}
	call := callOf("write", `{"text":"a"}`)
	refused(t, r, call, capability.Unavailable)
	r.log.fail = nil
	o.Up()
	if _, err := beside.Invoke(t.Context(), call); !errors.Is(err, ErrStillRunning) || runs.Load() != 0 {
		t.Errorf("another process: %v with %d runs, want that it waits for the first", err, runs.Load())
	}
	if fate, known, err := r.CallStatus(t.Context(), call); known || err != nil {
		t.Errorf("CallStatus() = %+v, %t, %v, want that nothing happened", fate, known, err)
	}
	for range 2 {
		gives(t, r, call, "run 1")
	}
}

// TestOutageConsent: a consent for one call is not used while it cannot be checked
// whether it still holds, and is there afterwards, for one call.
func TestOutageConsent(t *testing.T) {
	o := storetest.NewOutage(t)
	s := storetest.Open(t, o.Address)
	desk := openDesk(t, s)
	var runs atomic.Int64
	r := newRig(t, counting(&runs), func(c *Config) { c.Desk = desk })
	call := callOf("destroy", `{"text":"a"}`)
	res, err := r.Invoke(t.Context(), call)
	wantKind(t, err, capability.Unapproved)
	settle(t, desk, res.Meta[MetaTicket], approval.Answer{By: call.Principal, Effect: approval.Yes, Scope: approval.Once})
	o.Down()
	for range 3 {
		if _, err := r.Invoke(t.Context(), call); err == nil || runs.Load() != 0 {
			t.Fatalf("Invoke() without a server = %v with %d runs, want a refusal and none", err, runs.Load())
		}
	}
	o.Up()
	gives(t, r, call, "run 1")
	refused(t, r, call, capability.Unapproved)
}

// TestOutageStorm: while the server ends sessions again and again, many make
// the same calls in two processes' worth of runners. No call has its effect
// twice, and what its caller was told is true.
func TestOutageStorm(t *testing.T) {
	o := storetest.NewOutage(t)
	const calls = 20
	var runs [calls]atomic.Int64
	number := func(call capability.Call) int {
		var args struct{ Text string }
		var n int
		if err := json.Unmarshal(call.Arguments, &args); err == nil {
			_, _ = fmt.Sscan(args.Text, &n)
		}
		return n
	}
	x := tool{invoke: func(_ context.Context, call capability.Call) (capability.Result, error) {
		return capability.Result{Parts: []capability.Part{{Text: fmt.Sprintf("run %d", runs[number(call)].Add(1))}}}, nil
	}}
	change := func(c *Config) {
		c.Key = func(_ context.Context, call capability.Call) string { return fmt.Sprint(number(call)) }
		c.Limits = Limits{Lease: 30 * time.Second}.Always // no process counts as dead
	}
	rigs := []*rig{keyed(t, storetest.Open(t, o.Address), "", x, change), keyed(t, storetest.Open(t, o.Address), "", x, change)}
	var told [calls]atomic.Int64
	try := func(r *rig, n int) error {
		res, err := r.Invoke(t.Context(), callOf("write", fmt.Sprintf(`{"text":"%d"}`, n)))
		if err == nil {
			told[n].Add(1)
			if res.Parts[0].Text != "run 1" {
				t.Errorf("call %d = %s, want run 1", n, res.Parts[0].Text)
			}
		}
		return err
	}
	stop := o.Storm()
	var done sync.WaitGroup
	var refused atomic.Int64
	for i := range 8 {
		done.Go(func() {
			for n := range calls {
				if err := try(rigs[i%2], n); err != nil {
					refused.Add(1)
					if kind := capability.KindOf(err); kind != capability.Unavailable && kind != capability.InputNeeded {
						t.Errorf("call %d = %v", n, err)
					}
				}
			}
		})
	}
	done.Wait()
	ended := stop()
	states := map[string]int{}
	for n := range calls {
		err := try(rigs[0], n)
		switch kind := capability.KindOf(err); {
		case err == nil:
			states["has its result"]++
		case kind == capability.InputNeeded || kind == capability.Unavailable: // it began, and how it ended was not kept
			states[fmt.Sprintf("unknown, ran %d", runs[n].Load())]++
		default:
			t.Errorf("call %d afterwards = %v", n, err)
		}
		if got := runs[n].Load(); got > 1 || told[n].Load() > 0 && got == 0 {
			t.Errorf("call %d ran %d times, and %d were told of its result", n, got, told[n].Load())
		}
	}
	t.Logf("%d sessions ended, %d refusals; afterwards %v of %d", ended, refused.Load(), states, calls)
}
