package runner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// A shelf is an [Effects] that holds one item, and Runners that are alive. It
// takes no time, which a real store does beside a bubble's clock.
type shelf struct {
	key   string
	value effect
	alive map[string]string // processes, by Runner
}

func (s *shelf) Get(_ context.Context, key string) (store.Item, bool, error) {
	if key == s.key {
		value, err := json.Marshal(s.value)
		return store.Item{Key: key, Value: value}, err == nil, err
	}
	for owner, process := range s.alive {
		if key == store.Key("runner", owner) {
			return store.Item{Key: key, Value: []byte(process)}, true, nil
		}
	}
	return store.Item{}, false, nil
}

func (s *shelf) Apply(context.Context, *store.Batch) (int64, error) {
	return 0, errors.New("nothing is written here")
}

// TestFate: a call runs while it has its place in this Runner or its own Runner
// is alive; what is kept as broken, or of an owner who is gone, does not.
func TestFate(t *testing.T) {
	const mine, other = "", "another runner"
	for name, tt := range map[string]struct {
		state, owner string
		flies        bool // it has its place in this Runner
		alive        map[string]string
		want         CallStatus
		none         bool
	}{
		"running here":         {state: effectRunning, flies: true, want: CallStatus{Runs: true}},
		"running elsewhere":    {state: effectRunning, owner: other, alive: map[string]string{other: "p2"}, want: CallStatus{Runs: true}},
		"its process is gone":  {state: effectRunning, owner: other, alive: map[string]string{other: "dead"}},
		"its lease is over":    {state: effectRunning, owner: other},
		"asked for from here":  {state: effectRunning, owner: other, flies: true},
		"not at it any more":   {state: effectRunning},
		"broke off":            {state: effectUnknown},
		"broke off, kept late": {state: effectUnknown, flies: true},
		"ended":                {state: effectDone, want: CallStatus{Ended: true}},
		"ended elsewhere":      {state: effectDone, owner: other, want: CallStatus{Ended: true}},
		"nothing kept":         {none: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{alive: tt.alive}
				r := newRig(t, tool{}, func(c *Config) {
					c.Effects, c.Process = s, "p1"
					c.Dead = func(process string) bool { return process == "dead" }
				})
				call := callOf("write", `{"text":"a"}`)
				call.Key = "k"
				key := store.Key("effect", effectScope(call, "k"))
				if !tt.none {
					s.key = key
					s.value = effect{State: tt.state, ID: "e1", Owner: tt.owner, Began: time.Now(), Result: &capability.Result{Handle: "r1"}}
					if tt.owner == mine {
						s.value.Owner = r.effects.owner
					}
				}
				if tt.flies {
					c := &claim{key: key}
					if err := r.effects.begin(t.Context(), c); err != nil {
						t.Fatal(err)
					}
					defer r.effects.end(c)
				}
				got, ok, err := r.CallStatus(t.Context(), call)
				if err != nil || ok == tt.none {
					t.Fatalf("CallStatus() = %+v, %v, %v, want one: %v", got, ok, err, !tt.none)
				}
				if tt.none {
					return
				}
				if got.Runs != tt.want.Runs || got.Ended != tt.want.Ended || got.Effect != "e1" || got.Began.IsZero() {
					t.Errorf("CallStatus() = %+v, want runs %v, ended %v", got, tt.want.Runs, tt.want.Ended)
				}
				if got.Ended != (got.Result.Handle == "r1") {
					t.Errorf("CallStatus() = %+v, want a result where it has ended", got)
				}
			})
		})
	}
}
