package runner

import (
	"context"
	"sync/atomic"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
)

// TestKeyOfCall: a call with a key that changes something happens once; the next
// key, or none, is a new call; and without a place for effects it does not run.
func TestKeyOfCall(t *testing.T) {
	var ran atomic.Int64
	x := tool{invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
		ran.Add(1)
		return echo(ctx, c)
	}}
	r := newRig(t, x, func(c *Config) { c.Effects = openStore(t) })
	call := callOf("write", `{"text":"a"}`)
	for i, c := range []struct {
		key  string
		want int64
	}{{"k1", 1}, {"k1", 1}, {"k2", 2}, {"", 3}, {"", 4}} {
		call.Key = c.key
		succeeds(t, r, call)
		if got := ran.Load(); got != c.want {
			t.Errorf("after call %d it ran %d times, want %d", i, got, c.want)
		}
	}
	bare := newRig(t, x, nil)
	call.Key = "k1"
	if e := refused(t, bare, call, capability.Unavailable); e.Fix == "" || ran.Load() != 4 {
		t.Errorf("without effects: %v, and it ran %d times, want a way to fix it and 4", e, ran.Load())
	}
	look := callOf("look", `{"text":"a"}`)
	look.Key = "k1"
	succeeds(t, bare, look)
}

// TestSurfaceOfCall: the rules see the surface of the call, and Config.Surface
// goes before it.
func TestSurfaceOfCall(t *testing.T) {
	rules := rulesOf(t, policy.Rule{ID: "no.mcp", Effect: policy.Deny, Capabilities: []string{"tool:look"}, Surfaces: []policy.Surface{policy.SurfaceMCP}, Where: "test:1"})
	use := func(c *Config) { c.Rules = rules }
	r := newRig(t, tool{}, use)
	call := callOf("look", `{"text":"a"}`)
	call.Surface = string(policy.SurfaceRun)
	succeeds(t, r, call)
	call.Surface = string(policy.SurfaceMCP)
	refused(t, r, call, capability.Denied)
	fixed := newRig(t, tool{}, func(c *Config) {
		use(c)
		c.Surface = func(context.Context, capability.Call) policy.Surface { return policy.SurfaceRun }
	})
	succeeds(t, fixed, call)
}
