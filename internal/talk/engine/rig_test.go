package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/run/executor"
	"ken/internal/run/executor/results"
	"ken/internal/run/result"
	"ken/internal/run/runner"
	"ken/internal/store"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/testkit/doortest"
	"ken/internal/testkit/storetest"
	"ken/llm"
	"ken/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada = capability.Principal{ID: "ada"}

// A rig is an engine over a real door, runner and store, with tools that are
// Go functions.
type rig struct {
	*Engine
	t        testing.TB
	door     *door.Door
	catalog  *catalog.Catalog
	memory   *source.Memory
	db       *store.Store
	desk     *approval.Desk
	kept     *result.Store
	run      *runner.Runner
	sessions *session.Store
	cfg      Config

	mu    sync.Mutex
	does  map[capability.ID]capability.InvokerFunc
	calls []capability.Call
	model llm.Model
	row   model.Row
	fake  *llmtest.Fake // the model of begin

	events []event.Event // of the last turn that was watched
	asked  event.Asked   // the last question of all of them
}

// A setting changes a rig before it is made.
type setting struct {
	rules  func(*policy.Settings)
	tools  func(*rig)
	config func(*Config)
	row    model.Row
	db     *store.Store
	locks  time.Duration // of sessions
	lease  time.Duration // of runners
	inline int           // bytes of text that a runner leaves in a result
	find   func()        // is called before anything is found
	only   bool          // there is nothing but tools
	status bool          // the engine can ask what became of a call
	own    []executor.Tool
}

func (r *rig) Facts(context.Context, capability.Call, *capability.Capability) (runner.Facts, error) {
	return runner.Facts{}, nil
}

func (r *rig) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	r.mu.Lock()
	r.calls = append(r.calls, call)
	does := r.does[call.Target]
	r.mu.Unlock()
	return does(ctx, call)
}

// made returns the targets of the calls that reached a tool.
func (r *rig) made() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, c := range r.calls {
		out = append(out, string(c.Target))
	}
	return out
}

func (r *rig) count(target string) int {
	n := 0
	for _, m := range r.made() {
		if m == target {
			n++
		}
	}
	return n
}

const (
	nameSchema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`
	anySchema  = `{"type":"object"}`
)

var (
	reading  = capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}
	changing = capability.Effects{ReadOnly: capability.No, OpenWorld: capability.No, Destructive: capability.No}
)

func said(text string) (capability.Result, error) {
	return capability.Result{Parts: []capability.Part{{Text: text}}}, nil
}

// tool adds a tool.
func (r *rig) tool(id, about, schema string, e capability.Effects, f capability.InvokerFunc) {
	_, name, _ := strings.Cut(id, ":")
	r.memory.Put(capability.Capability{
		ID: capability.ID(id), Kind: capability.KindTool, Name: name, Description: about, Category: "test", Effects: e,
		Run: &capability.Recipe{Runner: "mcp.call"},
	}, capability.Detail{Schema: json.RawMessage(schema)})
	r.mu.Lock()
	r.does[capability.ID(id)] = f
	r.mu.Unlock()
}

// standard adds the tools that most tests use.
func (r *rig) standard() {
	r.tool("tool:greet", "Greet somebody by name, read a greeting", nameSchema, reading, func(_ context.Context, c capability.Call) (capability.Result, error) {
		var in struct{ Name string }
		if err := json.Unmarshal(c.Arguments, &in); err != nil {
			return capability.Result{}, err
		}
		return said("hello " + in.Name)
	})
	r.tool("tool:save", "Save a note to the notebook", nameSchema, changing, func(context.Context, capability.Call) (capability.Result, error) { return said("saved") })
	r.tool("tool:broken", "Always fails", anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) {
		return capability.Result{Failed: true, Parts: []capability.Part{{Text: "disk on fire"}}}, nil
	})
	r.tool("tool:secret", "Read a secret that nobody may", anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) { return said("the secret") })
}

// open makes a rig.
func open(t testing.TB, s setting) *rig {
	t.Helper()
	r := &rig{t: t, does: map[capability.ID]capability.InvokerFunc{}, memory: source.NewMemory("test", capability.TrustUser), row: s.row}
	if r.row.Window == 0 {
		r.row.Window = 200_000
	}
	r.standard()
	if !s.only {
		r.memory.Put(capability.Capability{
			ID: "skill:roses", Kind: capability.KindSkill, Name: "roses", Description: "Pruning roses in March", Category: "garden",
		}, capability.Detail{Body: "Cut above the bud."})
	}
	if s.tools != nil {
		s.tools(r)
	}
	own := source.NewMemory("own", capability.TrustBuiltin)
	for _, tool := range slices.Concat(results.Tools(), s.own) {
		own.Put(tool.Capability, tool.Detail)
	}
	var run *runner.Runner
	w := doortest.Open(t, doortest.Config{
		Source: r.memory, Own: own, Find: s.find, Runner: func(context.Context) (capability.Invoker, error) { return run, nil },
		Rules: func(rules *policy.Settings) {
			rules.Intents = policy.Off
			rules.Permissions = map[policy.Permission]policy.Effect{}
			rules.Rules = []policy.Rule{
				{ID: "quiet", Effect: policy.Allow, Capabilities: []string{"tool:save", "tool:slow*"}, Reason: "the tests say so", Where: "test:1"},
				{ID: "no.secret", Effect: policy.Deny, Capabilities: []string{"tool:secret"}, Reason: "nobody reads it", Where: "test:2"},
			}
			if s.rules != nil {
				s.rules(rules)
			}
		},
	})
	r.door, r.catalog = w.Door, w.Catalog
	r.db = s.db
	if r.db == nil {
		r.db = storetest.Open(t, storetest.Address(t))
	}
	run = r.runner(t, w.Rules, runner.Limits{Lease: s.lease, Inline: s.inline})
	r.run = run
	r.sessions = session.New(r.db, session.Config{LockFor: s.locks})
	r.cfg = Config{
		Door: r.door, Sessions: r.sessions,
		Model: func(context.Context, session.Head, Retry) (Model, error) {
			return Model{Model: r.model, Name: "m", Row: r.row}, nil
		},
		Reads: func(e *door.Entry) bool { return policy.Of(e.Capability).Class == policy.Read },
		Layers: func(_ context.Context, in LayerInput) ([]prompt.Layer, []event.Notice, error) {
			return []prompt.Layer{{Name: prompt.Base, Text: "You are Ken.", Must: true}, {Name: prompt.Map, Text: in.Map}}, nil, nil
		},
		Ticket: r.ticket,
		Wait: func(ctx context.Context, id string) (bool, error) {
			ticket, err := r.desk.Wait(ctx, id)
			if err != nil {
				return false, err
			}
			return ticket.State == approval.Granted, ticket.Err()
		},
		Keep: func(_ context.Context, k Kept) (string, error) {
			e, err := r.kept.Keep(result.ScopeOf(capability.Call{Principal: k.Principal, Session: k.Session}), result.About{Target: "message"}, k.Text, false, nil)
			return fmt.Sprintf("%s\n[%d bytes in all; read_result, handle %s]", k.Text[:k.Limit], len(k.Text), e.Handle), err
		},
		Intents: func(at string) IntentRules {
			if !w.Rules.AsksIntent(policy.Surface(at)) {
				return IntentRules{}
			}
			return IntentRules{Names: policy.Intents()}
		},
	}
	if s.status {
		r.cfg.CallStatus = func(ctx context.Context, call capability.Call) (CallStatus, bool, error) {
			status, ok, err := r.run.CallStatus(ctx, call)
			return CallStatus(status), ok, err
		}
	}
	if s.config != nil {
		s.config(&r.cfg)
	}
	r.Engine = New(r.cfg)
	return r
}

func (r *rig) runner(t testing.TB, rules *policy.Rules, limits runner.Limits) *runner.Runner {
	t.Helper()
	dir := t.TempDir()
	key, err := audit.LoadKey(dir + "/key")
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Config{Dir: dir + "/audit", CheckpointDir: dir + "/heads", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if r.desk, err = approval.New(r.db, approval.Config{}); err != nil {
		t.Fatal(err)
	}
	if r.kept, err = result.Open(result.Config{Dir: dir + "/results"}); err != nil {
		t.Fatal(err)
	}
	run, err := runner.New(runner.Config{
		Resolve: r.door.Resolve, Log: log, Rules: func() *policy.Rules { return rules }, Desk: r.desk, Effects: r.db, Results: r.kept, Limits: limits.Always,
		Executors: runner.Executors{"mcp.*": r, "result.*": runner.FromExecutor(results.New(r.kept))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(run.Close(context.Background()), log.Close(), r.kept.Close()); err != nil {
			t.Error(err)
		}
	})
	return run
}

func (r *rig) ticket(ctx context.Context, id string) (event.Ticket, error) {
	t, err := r.desk.Get(ctx, id)
	if err != nil {
		return event.Ticket{}, err
	}
	out := event.Ticket{}
	for _, l := range t.Lines() {
		out.Lines = append(out.Lines, event.Line{Name: l.Name, Text: l.Text})
	}
	return out, nil
}

// begin starts a session and lets a scripted model answer in it.
func (r *rig) begin(script llmtest.Script) string {
	r.t.Helper()
	r.fake = &llmtest.Fake{Script: script}
	r.model = r.fake
	return r.session()
}

func (r *rig) session() string {
	r.t.Helper()
	h, err := r.sessions.Begin(context.Background(), session.Head{Principal: ada.ID})
	if err != nil {
		r.t.Fatal(err)
	}
	return h.ID
}

// turn takes a turn to its end and gives what happened.
func (r *rig) turn(in event.Input) []event.Event {
	r.t.Helper()
	return r.watch(context.Background(), in, func(event.Event) {})
}

// watch is turn, and shows each event when it comes.
func (r *rig) watch(ctx context.Context, in event.Input, see func(event.Event)) []event.Event {
	r.t.Helper()
	in.Principal, r.events = ada, nil
	for e, err := range r.Turn(ctx, in) {
		if err != nil {
			r.t.Fatalf("Turn(%+v) = %v", in, err)
		}
		r.events = append(r.events, e)
		if a, ok := e.(event.Asked); ok {
			r.asked = a
		}
		see(e)
	}
	return r.events
}

// try is turn for what may fail, and for several at once.
func (r *rig) try(ctx context.Context, in event.Input) ([]event.Event, error) {
	if in.Principal.ID == "" {
		in.Principal = ada
	}
	var events []event.Event
	for e, err := range r.Turn(ctx, in) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// say is a turn of a session with nothing special.
func (r *rig) say(id, text string) []event.Event {
	r.t.Helper()
	return r.turn(event.Input{Session: id, Text: text})
}

// entries reads a session and checks that it is whole.
func (r *rig) entries(id string) []session.Entry {
	r.t.Helper()
	head, entries, err := r.sessions.Read(context.Background(), ada, id)
	if err != nil {
		r.t.Fatalf("Read(%s) = %v", id, err)
	}
	checkWhole(r.t, head, entries)
	return entries
}

// checkWhole fails where a call has not exactly one result. The last answer of a
// turn that is open may wait for its own.
func checkWhole(t testing.TB, head session.Head, entries []session.Entry) {
	t.Helper()
	open := map[string]int{}
	close := func(where string, may bool) {
		for id, n := range open {
			if n > 1 || n == 0 && !may {
				t.Errorf("%s: call %s has %d results, want 1", where, id, n)
			}
		}
		clear(open)
	}
	for _, e := range session.Live(entries) {
		switch e.Kind {
		case session.Assistant:
			close(fmt.Sprintf("before entry %d", e.Seq), false)
			for _, c := range callsOf(e.Blocks) {
				if _, twice := open[c.ID]; twice {
					t.Errorf("entry %d has call %s twice", e.Seq, c.ID)
				}
				open[c.ID] = 0
			}
		case session.Results:
			for _, b := range e.Blocks {
				if b.Result == nil {
					continue
				}
				if _, asked := open[b.Result.ID]; !asked {
					t.Errorf("entry %d has a result of %s, which nobody called", e.Seq, b.Result.ID)
				}
				open[b.Result.ID]++
			}
		}
	}
	close("at the end", head.Open)
}

// done returns the last event, which must be of the reason.
func done(t testing.TB, events []event.Event, want event.End) event.Done {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("nothing happened")
	}
	d, ok := events[len(events)-1].(event.Done)
	if !ok || d.Reason != want || want == event.EndFailed && d.Why == "" {
		t.Fatalf("the turn ended with %s (%s), want %s", d.Reason, d.Why, want)
	}
	return d
}

// of returns the events of a type.
func of[E event.Event](events []event.Event) []E {
	var out []E
	for _, e := range events {
		if x, ok := e.(E); ok {
			out = append(out, x)
		}
	}
	return out
}

func call(name, args string) llm.ToolCall { return llm.ToolCall{Name: name, Arguments: []byte(args)} }

// invoke is a call through the tool that calls any.
func invoke(id, args string) llm.ToolCall {
	return call(toolInvoke, fmt.Sprintf(`{"capability":%q,"arguments":%s}`, id, args))
}

func answers(calls ...llm.ToolCall) llmtest.Reply { return llmtest.Reply{Calls: calls} }
func text(s string) llmtest.Reply                 { return llmtest.Reply{Text: s} }

// results returns the texts of all results of a session, in order.
func resultTexts(entries []session.Entry) []string {
	var out []string
	for _, e := range session.Live(entries) {
		for _, b := range e.Blocks {
			if b.Result != nil {
				out = append(out, textOf(b.Result.Blocks))
			}
		}
	}
	return out
}

func contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s is %q, want %q in it", what, text, p)
		}
	}
}
