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
)

// keyed makes a rig whose calls all have one key.
func keyed(t *testing.T, s Effects, key string, x tool, change func(*Config)) *rig {
	t.Helper()
	return newRig(t, x, func(c *Config) {
		c.Effects = s
		c.Key = func(context.Context, capability.Call) string { return key }
		c.Limits = Limits{Lease: 100 * time.Millisecond}.Always
		if change != nil {
			change(c)
		}
	})
}

// counting counts its runs and tells which one it was.
func counting(runs *atomic.Int64) tool {
	return tool{invoke: func(context.Context, capability.Call) (capability.Result, error) {
		return capability.Result{Parts: []capability.Part{{Text: fmt.Sprintf("run %d", runs.Add(1))}}, Meta: map[string]string{"mine": "yes"}}, nil
	}}
}

// TestEffectOnce: made again under its key, by this process or another, a call
// gives its result and has no second effect.
func TestEffectOnce(t *testing.T) {
	s := openStore(t)
	var runs atomic.Int64
	r := keyed(t, s, "turn1/call1", counting(&runs), nil)
	call := callOf("write", `{"text":"a"}`)
	first, err := r.Invoke(t.Context(), call)
	if err != nil || first.Parts[0].Text != "run 1" || first.Meta[MetaRepeated] != "" {
		t.Fatalf("Invoke() = %+v, %v, want run 1", first, err)
	}
	other := keyed(t, s, "turn1/call1", counting(&runs), func(c *Config) { // with a catalog that was reloaded
		inner := c.Resolve
		c.Resolve = func(ctx context.Context, call capability.Call) (Resolved, error) {
			out, err := inner(ctx, call)
			reloaded := *out.Capability
			reloaded.Hash, out.Capability = "h2", &reloaded
			return out, err
		}
	})
	for name, one := range map[string]*rig{"same": r, "other": other} {
		again, err := one.Invoke(t.Context(), call)
		if err != nil || again.Parts[0].Text != "run 1" || again.Meta[MetaRepeated] != "true" || again.Meta["mine"] != "yes" {
			t.Errorf("%s: Invoke() again = %+v, %v, want the first result", name, again, err)
		}
		if rec := one.log.last(t); rec.Metadata.Notes["repeated"] == "" || rec.EffectID != first.Meta[MetaEffect] {
			t.Errorf("%s: record = %+v, want the first effect, repeated", name, rec)
		}
	}
	changed := call
	changed.Arguments = json.RawMessage(`{"text":"b"}`)
	refused(t, r, changed, capability.Conflict)
	// Another session, another principal: another key.
	for _, c := range []func(*capability.Call){
		func(c *capability.Call) { c.Session = "s2" },
		func(c *capability.Call) { c.Principal.ID = "bob" },
		func(c *capability.Call) { c.Principal.Tenant = "t" },
	} {
		mine := call
		c(&mine)
		if res, err := r.Invoke(t.Context(), mine); err != nil || res.Meta[MetaRepeated] != "" {
			t.Errorf("Invoke(%+v) = %+v, %v, want a run of its own", mine, res, err)
		}
	}
	if got := runs.Load(); got != 4 {
		t.Errorf("%d runs, want 4", got)
	}
}

// TestEffectAtOnce: of many callers with one key, in two runners, one has the
// effect and those beside it get its result.
func TestEffectAtOnce(t *testing.T) {
	s := openStore(t)
	var runs atomic.Int64
	release := make(chan struct{})
	x := tool{invoke: func(context.Context, capability.Call) (capability.Result, error) {
		runs.Add(1)
		<-release
		return capability.Result{Parts: []capability.Part{{Text: "once"}}}, nil
	}}
	a, b := keyed(t, s, "k", x, func(c *Config) { c.Limits = Limits{Lease: time.Minute}.Always }), keyed(t, s, "k", x, func(c *Config) { c.Limits = Limits{Lease: time.Minute}.Always })
	var wg sync.WaitGroup
	var results, busy atomic.Int64
	for i := range 20 {
		wg.Go(func() {
			one := a
			if i%2 == 1 {
				one = b
			}
			res, err := one.Invoke(t.Context(), callOf("write", `{"text":"a"}`))
			switch {
			case err == nil && res.Parts[0].Text == "once":
				results.Add(1)
			case capability.KindOf(err) == capability.Unavailable: // it runs in the other
				if busy.Add(1) == 10 {
					close(release)
				}
			default:
				t.Errorf("Invoke() = %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if runs.Load() != 1 || results.Load() != 10 || busy.Load() != 10 {
		t.Errorf("%d runs, %d results, %d told that it runs; want 1, 10, 10", runs.Load(), results.Load(), busy.Load())
	}
}

// TestEffectNothingHappened: a call that an executor says never began may be
// made again; one that timed out gives its timeout; one that broke is unknown.
func TestEffectEnds(t *testing.T) {
	tests := map[string]struct {
		err   error
		again capability.ErrorKind
		runs  int64
	}{
		"refused":  {&capability.Error{Kind: capability.Unavailable, Op: "confine", Err: errors.New("no sandbox")}, capability.Unavailable, 2},
		"timeout":  {&capability.Error{Kind: capability.Timeout, Op: "run", Err: errors.New("too long")}, capability.Timeout, 1},
		"broke":    {errors.New("connection lost"), capability.InputNeeded, 1},
		"internal": {&capability.Error{Kind: capability.Internal, Op: "run"}, capability.InputNeeded, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int64
			r := keyed(t, openStore(t), "k", tool{invoke: func(context.Context, capability.Call) (capability.Result, error) {
				runs.Add(1)
				return capability.Result{}, tt.err
			}}, nil)
			call := callOf("write", `{"text":"a"}`)
			_, err := r.Invoke(t.Context(), call)
			if err == nil {
				t.Fatal("Invoke() error = nil")
			}
			refused(t, r, call, tt.again)
			if runs.Load() != tt.runs {
				t.Errorf("%d runs, want %d", runs.Load(), tt.runs)
			}
		})
	}
}

// TestEffectBeforeConsent: a call that has happened needs no second consent.
func TestEffectBeforeConsent(t *testing.T) {
	s := openStore(t)
	desk := openDesk(t, s)
	var runs atomic.Int64
	r := keyed(t, s, "k", counting(&runs), func(c *Config) { c.Desk = desk })
	call := callOf("destroy", `{"text":"a"}`)
	res, err := r.Invoke(t.Context(), call)
	wantKind(t, err, capability.Unapproved)
	settle(t, desk, res.Meta[MetaTicket], approval.Answer{By: call.Principal, Effect: approval.Yes, Scope: approval.Once})
	for range 3 {
		gives(t, r, call, "run 1")
	}
}

// TestEffectStoreFails: what cannot be made sure of does not run.
func TestEffectStoreFails(t *testing.T) {
	s := openStore(t)
	r := keyed(t, s, "k", tool{invoke: never(t)}, func(c *Config) { c.Limits = Limits{Lease: time.Hour}.Always })
	s.Close()
	if e := refused(t, r, callOf("write", `{"text":"a"}`), capability.Unavailable); !errors.Is(e, store.ErrClosed) {
		t.Errorf("Invoke() error = %v, want the store's", e)
	}
}

// TestEffectReleased: what cannot be recorded does not happen, and leaves no claim
// behind.
func TestEffectReleased(t *testing.T) {
	var runs atomic.Int64
	r := keyed(t, openStore(t), "k", counting(&runs), nil)
	full := errors.New("no space left")
	r.log.fail = func(rec audit.Record) error {
		if rec.Event == audit.Started {
			return full
		}
		return nil
	}
	if e := refused(t, r, callOf("write", `{"text":"a"}`), capability.Unavailable); !errors.Is(e, full) || e.Rule != "audit" || e.Fix == "" || runs.Load() != 0 {
		t.Errorf("Invoke() error = %v after %d runs, want the cause, the rule and what to do", e, runs.Load())
	}
	r.log.fail = nil
	gives(t, r, callOf("write", `{"text":"a"}`), "run 1")
}
