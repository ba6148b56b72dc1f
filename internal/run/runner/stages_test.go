package runner

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"

	"github.com/google/go-cmp/cmp"
)

// marking is a desk that says when it is asked.
type marking struct {
	Desk
	trace *trace
}

func (m marking) Grants(ctx context.Context, q *policy.Request) ([]policy.Grant, error) {
	m.trace.add("consent")
	return m.Desk.Grants(ctx, q)
}

func (m marking) Consume(ctx context.Context, id string) (approval.Grant, error) {
	m.trace.add("consume")
	return m.Desk.Consume(ctx, id)
}

type marker struct{ trace *trace }

func (marker) Name() string { return "marker" }

func (m marker) Before(_ context.Context, c capability.Call) (capability.Call, error) {
	m.trace.add("plugin before")
	return c, nil
}

func (m marker) After(_ context.Context, _ capability.Call, r capability.Result) (capability.Result, error) {
	m.trace.add("plugin after")
	return r, nil
}

// TestStageOrder sees the order of stages by what each of them does.
func TestStageOrder(t *testing.T) {
	desk := openDesk(t, openStore(t))
	tr := &trace{}
	x := tool{
		facts: func(capability.Call) (Facts, error) { tr.add("facts"); return Facts{}, nil },
		invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			tr.add("execute")
			return echo(ctx, c)
		},
	}
	r := newRig(t, x, func(c *Config) {
		c.Log = &memoryLog{trace: tr}
		c.Plugins = []Plugin{marker{tr}}
		c.Desk = marking{desk, tr}
		resolve, rules := c.Resolve, c.Rules
		c.Resolve = func(ctx context.Context, call capability.Call) (Resolved, error) {
			tr.add("resolve")
			out, err := resolve(ctx, call)
			out.Schema = func(context.Context) (json.RawMessage, error) { tr.add("validate"); return []byte(noteSchema), nil }
			return out, err
		}
		c.Rules = func() *policy.Rules { tr.add("rules"); return rules() }
		c.Observe = func(s Transition) { tr.add(s.State.String()) }
	})
	call := callOf("destroy", `{"text":"a"}`)
	res, err := r.Invoke(t.Context(), call)
	wantKind(t, err, capability.Unapproved)
	settle(t, desk, res.Meta[MetaTicket], approval.Answer{By: call.Principal, Effect: approval.Yes, Scope: approval.Once})
	tr.events = nil
	r.schemas.by = nil // so that validate asks for it again
	succeeds(t, r, call)
	want := []string{
		"CREATED", "VALIDATING", "plugin before", "resolve", "validate", "facts", "rules", "consent", "consume",
		"append capability_started", "rules", "EXECUTING", "execute", "PROCESSING", "plugin after",
		"LOGGING", "append capability_executed", "COMPLETED",
	}
	if diff := cmp.Diff(want, tr.all()); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
}

// TestT13States are the seed's state sequences; both failures pass LOGGING.
func TestT13States(t *testing.T) {
	tests := map[string]struct {
		call   capability.Call
		invoke func(context.Context, capability.Call) (capability.Result, error)
		want   string
		status audit.Status
	}{
		"completed": {callOf("look", `{"text":"a"}`), echo, "CREATED VALIDATING EXECUTING PROCESSING LOGGING COMPLETED", audit.Completed},
		"invalid":   {callOf("look", `{}`), echo, "CREATED VALIDATING LOGGING FAILED", audit.CallFailed},
		"envelope":  {callOf("invoke_capability", `{}`), echo, "CREATED LOGGING FAILED", audit.CallFailed},
		"denied":    {callOf("denied", `{"text":"a"}`), echo, "CREATED VALIDATING LOGGING FAILED", audit.Denied},
		"failed": {callOf("look", `{"text":"a"}`), func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{Failed: true, Parts: []capability.Part{{Text: "no"}}}, nil
		}, "CREATED VALIDATING EXECUTING PROCESSING LOGGING FAILED", audit.CallFailed},
		"broken": {callOf("look", `{"text":"a"}`), func(context.Context, capability.Call) (capability.Result, error) { panic("secret") },
			"CREATED VALIDATING EXECUTING PROCESSING LOGGING FAILED", audit.CallFailed},
		"timeout": {callOf("look", `{"text":"a"}`), func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{}, &capability.Error{Kind: capability.Timeout, Op: "run"}
		}, "CREATED VALIDATING EXECUTING PROCESSING LOGGING TIMEOUT", audit.CallTimeout},
		"cancelled": {callOf("look", `{"text":"a"}`), func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{Failed: true, Meta: map[string]string{MetaEnd: "cancelled"}}, nil
		}, "CREATED VALIDATING EXECUTING PROCESSING LOGGING FAILED", audit.Cancelled},
		"timed out itself": {callOf("look", `{"text":"a"}`), func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{Failed: true, Meta: map[string]string{MetaEnd: "timed-out"}}, nil
		}, "CREATED VALIDATING EXECUTING PROCESSING LOGGING TIMEOUT", audit.CallTimeout},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			r := newRig(t, tool{invoke: tt.invoke}, func(c *Config) {
				c.Observe = func(s Transition) { got = append(got, s.State.String()) }
			})
			res, err := r.Invoke(t.Context(), tt.call)
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("states = %s, want %s", s, tt.want)
			}
			if res.Meta[MetaState] != got[len(got)-1] {
				t.Errorf("Meta[state] = %s, want %s", res.Meta[MetaState], got[len(got)-1])
			}
			if rec := r.log.last(t); rec.Status != tt.status {
				t.Errorf("recorded status = %s, want %s", rec.Status, tt.status)
			}
			if err != nil && (len(res.Parts) == 0 || !res.Failed) {
				t.Errorf("Invoke() = %+v with error %v, want a result that a model can read", res, err)
			}
			if err != nil && strings.Contains(err.Error()+res.Parts[0].Text, "secret") {
				t.Errorf("Invoke() error = %v, want nothing of what the panic said", err)
			}
		})
	}
}
