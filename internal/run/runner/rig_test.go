package runner

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// A trace is what happened, in order, as the parts around a Runner saw it.
type trace struct {
	mu     sync.Mutex
	events []string
}

func (tr *trace) add(s string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.events = append(tr.events, s)
}

func (tr *trace) all() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.events)
}

// memoryLog is an audit trail that is not durable.
type memoryLog struct {
	mu      sync.Mutex
	records []audit.Record
	fail    func(audit.Record) error
	trace   *trace
}

func (l *memoryLog) Append(ctx context.Context, records ...audit.Record) (audit.ID, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		if l.fail != nil {
			if err := l.fail(r); err != nil {
				return "", err
			}
		}
		if l.trace != nil {
			l.trace.add("append " + string(r.Event))
		}
	}
	l.records = append(l.records, records...)
	return "", nil
}

func (l *memoryLog) Announce(ctx context.Context, records ...audit.Record) (audit.ID, error) {
	return l.Append(ctx, records...)
}

func (l *memoryLog) Digest(data []byte) string { return "digest" }

func (l *memoryLog) all() []audit.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// last returns the newest closing record.
func (l *memoryLog) last(t *testing.T) audit.Record {
	t.Helper()
	all := l.all()
	if len(all) == 0 {
		t.Fatal("no record was written")
	}
	return all[len(all)-1]
}

// tool is an executor made of functions.
type tool struct {
	facts  func(capability.Call) (Facts, error)
	invoke func(context.Context, capability.Call) (capability.Result, error)
	schema string
}

func (x tool) Facts(_ context.Context, call capability.Call, _ *capability.Capability) (Facts, error) {
	if x.facts == nil {
		return Facts{}, nil
	}
	return x.facts(call)
}

func (x tool) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	return x.invoke(ctx, call)
}

func (x tool) Schema(*capability.Capability) json.RawMessage { return json.RawMessage(x.schema) }

func echo(_ context.Context, call capability.Call) (capability.Result, error) {
	return capability.Result{Parts: []capability.Part{{Text: string(call.Arguments)}}}, nil
}

const noteSchema = `{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer","minimum":0}},"required":["text"]}`

// look is a capability that only reads, and write one that changes something
// and is allowed; destroy needs a person each time, denied is refused.
func testCapabilities() map[capability.ID]*capability.Capability {
	out := map[capability.ID]*capability.Capability{}
	for _, name := range []string{"look", "write", "destroy", "denied", "repeat"} {
		c := &capability.Capability{
			ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Trust: capability.TrustUser,
			Hash: "hash-" + name, Origin: capability.Origin{Source: "test"},
			Effects: capability.Effects{Destructive: capability.No},
		}
		switch name {
		case "look":
			c.Effects.ReadOnly, c.Effects.OpenWorld = capability.Yes, capability.No
		case "destroy":
			c.Effects.Destructive = capability.Yes
		case "repeat":
			c.Effects.Idempotent = capability.Yes
		}
		out[c.ID] = c
	}
	return out
}

func testRules(t testing.TB) *policy.Rules {
	return rulesOf(t,
		policy.Rule{ID: "test.allow", Effect: policy.Allow, Capabilities: []string{"tool:write", "tool:repeat"}, Where: "test:1"},
		policy.Rule{ID: "test.deny", Effect: policy.Deny, Capabilities: []string{"tool:denied"}, Reason: "it is denied", Where: "test:2"})()
}

// rulesOf compiles rules beside the defaults, without intents.
func rulesOf(t testing.TB, rules ...policy.Rule) func() *policy.Rules {
	t.Helper()
	s := policy.Defaults(policy.Personal)
	s.Intents, s.Rules = policy.Off, rules
	return compiled(t, s)
}

func compiled(t testing.TB, s policy.Settings) func() *policy.Rules {
	t.Helper()
	rules, err := policy.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return func() *policy.Rules { return rules }
}

type rig struct {
	*Runner
	log   *memoryLog
	trace *trace
	cfg   Config
}

// newRig makes a Runner over the test's capabilities with an executor for all.
func newRig(t testing.TB, x tool, change func(*Config)) *rig {
	t.Helper()
	if x.invoke == nil {
		x.invoke = echo
	}
	if x.schema == "" {
		x.schema = noteSchema
	}
	tr := &trace{}
	log := &memoryLog{trace: tr}
	known, rules := testCapabilities(), testRules(t)
	cfg := Config{
		Resolve: func(_ context.Context, call capability.Call) (Resolved, error) {
			c := known[call.Target]
			if c == nil {
				return Resolved{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(call.Target)}
			}
			return Resolved{Capability: c, Extension: "ext"}, nil
		},
		Executors: Executors{"tool:*": x}, Log: log, Rules: func() *policy.Rules { return rules },
	}
	if change != nil {
		change(&cfg)
	}
	r, err := New(cfg)
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
	return &rig{r, log, tr, cfg}
}

func callOf(name, args string) capability.Call {
	return capability.Call{
		Target: capability.ID("tool:" + name), Arguments: json.RawMessage(args),
		Principal: capability.Principal{ID: "ann"}, Session: "s1", Origin: capability.ByPerson,
	}
}

func openStore(t testing.TB) *store.Store {
	t.Helper()
	return storetest.Open(t, storetest.Address(t))
}

func openDesk(t testing.TB, s *store.Store) *approval.Desk {
	t.Helper()
	d, err := approval.New(s, approval.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// succeeds makes a call that must succeed.
func succeeds(t *testing.T, r *rig, call capability.Call) capability.Result {
	t.Helper()
	res, err := r.Invoke(t.Context(), call)
	if err != nil {
		t.Fatalf("Invoke(%s %s) = %v", call.Target, call.Arguments, err)
	}
	return res
}

// gives makes a call that must end with a text.
func gives(t *testing.T, r *rig, call capability.Call, want string) capability.Result {
	t.Helper()
	res, err := r.Invoke(t.Context(), call)
	if err != nil || len(res.Parts) == 0 || res.Parts[0].Text != want {
		t.Errorf("Invoke(%s %s) = %+v, %v, want %s", call.Target, call.Arguments, res, err, want)
	}
	return res
}

// refused makes a call that must fail with a kind of error.
func refused(t *testing.T, r *rig, call capability.Call, kind capability.ErrorKind) *capability.Error {
	t.Helper()
	_, err := r.Invoke(t.Context(), call)
	return wantKind(t, err, kind)
}

// settle answers what a desk was asked.
func settle(t *testing.T, desk *approval.Desk, ticket string, answer approval.Answer) {
	t.Helper()
	if _, err := desk.Settle(t.Context(), ticket, answer); err != nil {
		t.Fatal(err)
	}
}

// again is a call with a person's word that it may run again, though nobody knows
// whether it has.
func again(t *testing.T, call capability.Call, err error) capability.Call {
	t.Helper()
	q, ok := errors.AsType[*Question](wantKind(t, err, capability.InputNeeded))
	if !ok || q.Name != AnswerAgain || q.Effect == "" {
		t.Fatalf("Invoke() error = %v, want a question about the effect", err)
	}
	yes, _ := json.Marshal(q.Effect)
	call.Answers = map[string]json.RawMessage{AnswerAgain: yes}
	return call
}

func wantKind(t *testing.T, err error, want capability.ErrorKind) *capability.Error {
	t.Helper()
	e, ok := errors.AsType[*capability.Error](err)
	if !ok || e.Kind != want {
		t.Fatalf("Invoke() error = %v, want one of kind %v", err, want)
	}
	return e
}
