package runner

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
)

// TestTimeout: the least of what recipe, call and limits say ends a call, with
// what it had to say, and the whole context below is cancelled.
func TestTimeout(t *testing.T) {
	tests := map[string]struct {
		limits Limits
		recipe int
		asked  time.Duration
		want   time.Duration
		knob   string
	}{
		"default":              {want: 300 * time.Second},
		"limit":                {limits: Limits{Timeout: 20 * time.Second}, want: 20 * time.Second},
		"recipe lowers":        {recipe: 7, want: 7 * time.Second, knob: "timeout_sec of its manifest"},
		"recipe cannot raise":  {recipe: 1000, want: 300 * time.Second},
		"recipe up to the cap": {limits: Limits{MaxTimeout: 500 * time.Second}, recipe: 1000, want: 500 * time.Second},
		"call lowers":          {recipe: 7, asked: time.Second, want: time.Second, knob: "the time that the call asks for"},
		"call cannot raise":    {recipe: 7, asked: time.Hour, want: 7 * time.Second, knob: "timeout_sec of its manifest"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := tool{
					facts: func(capability.Call) (Facts, error) { return Facts{Timeout: tt.asked}, nil },
					invoke: func(ctx context.Context, _ capability.Call) (capability.Result, error) {
						<-ctx.Done()
						return capability.Result{Failed: true, Parts: []capability.Part{{Text: "so far"}}}, ctx.Err()
					},
				}
				r := newRig(t, x, func(c *Config) {
					c.Limits = tt.limits.Always
					inner := c.Resolve
					c.Resolve = func(ctx context.Context, call capability.Call) (Resolved, error) {
						out, err := inner(ctx, call)
						out.Capability.Run = &capability.Recipe{Runner: "tool:x", TimeoutSec: tt.recipe}
						out.Capability.Permissions = []string{"network"}
						return out, err
					}
					c.Executors["tool:*"] = x.with(noteSchema)
				})
				begin := time.Now()
				call := callOf("write", `{"text":"a"}`)
				res, err := r.Invoke(t.Context(), call)
				if e := wantKind(t, err, capability.Timeout); e.Rule != cmp.Or(tt.knob, "limits.timeout") {
					t.Errorf("Invoke() error = %v, want the rule %q", e, tt.knob)
				}
				if took := time.Since(begin); took != tt.want {
					t.Errorf("stopped after %v, want %v", took, tt.want)
				}
				if res.Parts[0].Text != "so far" || !res.Failed || res.Meta[MetaState] != "TIMEOUT" {
					t.Errorf("Invoke() = %+v, want what it had so far", res)
				}
				if rec := r.log.all()[1]; rec.Event != audit.TimedOut {
					t.Errorf("recorded %s, want capability_timeout", rec.Event)
				}
			})
		})
	}
}

func (x tool) with(schema string) tool { x.schema = schema; return x }

// TestAbandoned: an executor that ignores its context does not hold up its
// caller for ever, but keeps its place.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		x := tool{invoke: func(_ context.Context, c capability.Call) (capability.Result, error) {
			<-stuck
			if _, err := c.Live.Write([]byte("late")); err == nil {
				t.Error("a call that has ended still writes")
			}
			return capability.Result{}, nil
		}}
		r := newRig(t, x, func(c *Config) {
			c.Limits = Limits{Timeout: 10 * time.Second, Grace: 2 * time.Second, Concurrent: 1}.Always
		})
		var live strings.Builder
		call := callOf("look", `{"text":"a"}`)
		call.Live = &live
		begin := time.Now()
		refused(t, r, call, capability.Timeout)
		if took := time.Since(begin); took != 12*time.Second {
			t.Errorf("gave up after %v, want 12s", took)
		}
		if l := r.Load(); l.Running != 1 {
			t.Errorf("Load() = %+v, want the place still taken", l)
		}
		close(stuck)
		synctest.Wait()
		if l := r.Load(); l.Running != 0 || live.String() != "" {
			t.Errorf("Load() = %+v, live output %q; want nothing", l, live.String())
		}
	})
}

// TestSlow: past the threshold a warning goes beside the closing record.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]int{5 * time.Second: 2, 5*time.Second + 1: 3} {
			x := tool{invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
				time.Sleep(took)
				return echo(ctx, c)
			}}
			r := newRig(t, x, nil)
			succeeds(t, r, callOf("look", `{"text":"a"}`))
			all := r.log.all()
			if len(all) != want || want == 3 && all[2].Event != audit.Slow {
				t.Errorf("after %v: %d records, want %d, the last one slow", took, len(all), want)
			}
		}
	})
}

// TestStop: a call that is stopped from outside says why, and its effect is
// cancelled.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := tool{invoke: func(ctx context.Context, _ capability.Call) (capability.Result, error) {
			<-ctx.Done()
			return capability.Result{}, ctx.Err()
		}}
		r := newRig(t, x, nil)
		errs := make(chan error, 1)
		go func() { _, err := r.Invoke(t.Context(), callOf("look", `{"text":"a"}`)); errs <- err }()
		synctest.Wait()
		running := r.Running()
		if len(running) != 1 || running[0].State != Executing || running[0].Target != "tool:look" {
			t.Errorf("Running() = %+v, want the one that executes", running)
		}
		revoked := errors.New("the tool was revoked")
		if n := r.Stop(revoked, func(c Running) bool { return c.Target == "tool:look" }); n != 1 {
			t.Errorf("Stop() = %d, want 1", n)
		}
		if err := <-errs; !errors.Is(err, revoked) || !errors.Is(err, context.Canceled) {
			t.Errorf("Invoke() error = %v, want one that says why", err)
		}
		synctest.Wait()
		if rec := r.log.last(t); rec.Status != audit.Cancelled || len(r.Running()) != 0 {
			t.Errorf("status %s with %d running, want CANCELLED and none", rec.Status, len(r.Running()))
		}
	})
}
