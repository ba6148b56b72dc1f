package queuetest

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/procid"
	"ken/internal/run/queue"
	"ken/internal/run/runner"
	"ken/internal/store"
	"ken/internal/testkit"
)

// A Tool is an executor made of a function.
type Tool func(context.Context, capability.Call) (capability.Result, error)

func (f Tool) Facts(context.Context, capability.Call, *capability.Capability) (runner.Facts, error) {
	return runner.Facts{}, nil
}

func (f Tool) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	return f(ctx, call)
}

func (f Tool) Schema(*capability.Capability) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
}

// A Maker makes calls through a real runner.
type Maker struct {
	*runner.Runner
	Desk *approval.Desk
}

func (m Maker) call(j queue.Job) capability.Call {
	call := j.Call
	call.Key, call.Surface = j.Key(), j.Surface
	return call
}

func (m Maker) Invoke(ctx context.Context, j queue.Job, live io.Writer) (capability.Result, error) {
	call := m.call(j)
	call.Live = live
	return m.Runner.Invoke(ctx, call)
}

func (m Maker) CallStatus(ctx context.Context, j queue.Job) (runner.CallStatus, bool, error) {
	return m.Runner.CallStatus(ctx, m.call(j))
}

func (m Maker) Repeatable(j queue.Job) bool { return j.Call.Target == "tool:repeat" }

func (m Maker) Pending(ctx context.Context, j queue.Job) (bool, error) {
	t, err := m.Desk.Get(ctx, j.Ticket)
	return err == nil && t.State == approval.Pending, err
}

// NewMaker makes one. Of its capabilities, look changes nothing, write does, repeat does no harm twice,
// destroy needs an approval, and what is denied is denied.
func NewMaker(t testing.TB, s *store.Store, dir string, do Tool, change ...func(*runner.Config)) Maker {
	t.Helper()
	key, err := audit.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "heads"), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	desk, err := approval.New(s, approval.Config{})
	if err != nil {
		t.Fatal(err)
	}
	set := policy.Defaults(policy.Personal)
	set.Intents = policy.Off
	set.Rules = []policy.Rule{
		{ID: "test.allow", Effect: policy.Allow, Capabilities: []string{"tool:write", "tool:repeat"}, Where: "test:1"},
		{ID: "test.deny", Effect: policy.Deny, Capabilities: []string{"tool:denied"}, Reason: "it is denied", Where: "test:2"},
	}
	rules, err := policy.Compile(set)
	if err != nil {
		t.Fatal(err)
	}
	cfg := runner.Config{
		Resolve: func(_ context.Context, call capability.Call) (runner.Resolved, error) {
			name := strings.TrimPrefix(string(call.Target), "tool:")
			c := &capability.Capability{
				ID: call.Target, Kind: capability.KindTool, Name: name, Trust: capability.TrustUser, Hash: "hash-" + name,
				Origin: capability.Origin{Source: "test"}, Effects: capability.Effects{Destructive: capability.No},
			}
			switch name {
			case "look":
				c.Effects.ReadOnly, c.Effects.OpenWorld = capability.Yes, capability.No
			case "repeat":
				c.Effects.Idempotent = capability.Yes
			case "destroy":
				c.Effects.Destructive = capability.Yes
			}
			return runner.Resolved{Capability: c, Extension: "ext"}, nil
		},
		Executors: runner.Executors{"tool:*": do}, Log: log, Rules: func() *policy.Rules { return rules }, Desk: desk, Effects: s,
		Process: procid.Self(), Dead: procid.Dead,
		Limits: runner.Limits{Lease: 300 * time.Millisecond, Grace: 200 * time.Millisecond}.Always,
	}
	for _, f := range change {
		f(&cfg)
	}
	r, err := runner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return Maker{r, desk}
}
