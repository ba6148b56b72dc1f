package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
)

func never(t *testing.T) func(context.Context, capability.Call) (capability.Result, error) {
	return func(context.Context, capability.Call) (capability.Result, error) {
		t.Error("the executor ran, want a refusal before it")
		return capability.Result{}, nil
	}
}

// TestT09OneResult: each way to be refused gives one result, a typed error and one
// closing record, and no effect.
func TestT09OneResult(t *testing.T) {
	note := `{"text":"a"}`
	hashed := callOf("look", note)
	hashed.CapabilityHash = "another"
	nobody := callOf("look", note)
	nobody.Principal = capability.Principal{}
	tests := map[string]struct {
		call   capability.Call
		change func(*Config)
		facts  func(capability.Call) (Facts, error)
		kind   capability.ErrorKind
		status audit.Status
		says   string
	}{
		"unknown target": {call: callOf("nothing", note), kind: capability.NotFound, status: audit.CallFailed},
		"nil capability": {call: callOf("look", note), kind: capability.NotFound, status: audit.CallFailed, change: func(c *Config) {
			c.Resolve = func(context.Context, capability.Call) (Resolved, error) { return Resolved{}, nil }
		}},
		"changed text": {call: hashed, kind: capability.Conflict, status: audit.CallFailed, says: "changed since it was described"},
		"no executor": {call: callOf("look", note), kind: capability.Unavailable, status: audit.CallFailed, says: "exec.*", change: func(c *Config) {
			c.Executors = Executors{"exec.*": c.Executors["tool:*"]}
		}},
		"bad arguments": {call: callOf("look", `{"text":7}`), kind: capability.Invalid, status: audit.CallFailed, says: "argument /text: want string, got integer"},
		"twice a key":   {call: callOf("look", `{"text":"a","text":"b"}`), kind: capability.Invalid, status: audit.CallFailed},
		"facts refuse": {call: callOf("look", note), kind: capability.Denied, status: audit.Denied, facts: func(capability.Call) (Facts, error) {
			return Facts{}, &capability.Error{Kind: capability.Denied, Op: "facts", Err: errors.New("no")}
		}},
		"facts without form": {call: callOf("look", note), kind: capability.Internal, status: audit.CallFailed, facts: func(capability.Call) (Facts, error) {
			return Facts{Isolation: json.RawMessage("full")}, nil
		}},
		"facts break": {call: callOf("look", note), kind: capability.Internal, status: audit.CallFailed, facts: func(capability.Call) (Facts, error) { panic("x") }},
		"rule":        {call: callOf("denied", note), kind: capability.Denied, status: audit.Denied, says: "test.deny"},
		"nobody":      {call: nobody, kind: capability.Denied, status: audit.Denied},
		"nil rules":   {call: callOf("look", note), kind: capability.Denied, status: audit.Denied, change: func(c *Config) { c.Rules = nil }},
		"switched off": {call: callOf("look", note), kind: capability.Denied, status: audit.Denied, says: "not reviewed", change: func(c *Config) {
			inner := c.Resolve
			c.Resolve = func(ctx context.Context, call capability.Call) (Resolved, error) {
				out, err := inner(ctx, call)
				out.Disabled, out.Fix = "not reviewed", "ken extension review ext"
				return out, err
			}
		}},
		"nobody to ask": {call: callOf("destroy", note), kind: capability.Denied, status: audit.Denied, says: "no person can be asked here"},
		"plugin": {call: callOf("look", note), kind: capability.Denied, status: audit.Denied, says: "not today", change: func(c *Config) {
			c.Plugins = []Plugin{before(func(c capability.Call) (capability.Call, error) { return c, errors.New("not today") })}
		}},
		"plugin breaks": {call: callOf("look", note), kind: capability.Denied, status: audit.Denied, change: func(c *Config) {
			c.Plugins = []Plugin{before(func(c capability.Call) (capability.Call, error) { panic("x") })}
		}},
		"plugin widens": {call: callOf("look", note), kind: capability.Denied, status: audit.Denied, says: "other parts of the call", change: func(c *Config) {
			c.Plugins = []Plugin{before(func(c capability.Call) (capability.Call, error) { c.Principal.ID = "root"; return c, nil })}
		}},
		"envelope": {call: callOf("invoke_capability", `{"capability":"tool:invoke_capability"}`), kind: capability.Invalid, status: audit.CallFailed, says: "itself"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tool{invoke: never(t), facts: tt.facts}, tt.change)
			res, err := r.Invoke(t.Context(), tt.call)
			e := wantKind(t, err, tt.kind)
			raw, _ := json.Marshal(res)
			if tt.says != "" && !strings.Contains(e.Error()+string(raw), tt.says) {
				t.Errorf("Invoke() = %s, %v, want %q in it", raw, e, tt.says)
			}
			if !res.Failed || len(res.Parts) == 0 || res.Parts[0].Text == "" {
				t.Errorf("Invoke() = %s, want a refusal that can be read", raw)
			}
			records := r.log.all()
			if len(records) != 1 || records[0].Status != tt.status || records[0].Error == nil {
				t.Errorf("records = %+v, want one closing record with status %s", records, tt.status)
			}
		})
	}
}

// before makes a plugin of a function.
type before func(capability.Call) (capability.Call, error)

func (before) Name() string { return "test" }

func (f before) Before(_ context.Context, c capability.Call) (capability.Call, error) { return f(c) }

// TestChangedAfterDecide: a plugin that keeps the bytes of a call and changes
// them once it was decided on gets the call refused; and what it changed never
// reaches the executor.
func TestChangedAfterDecide(t *testing.T) {
	var kept json.RawMessage
	plugin := before(func(c capability.Call) (capability.Call, error) {
		kept = c.Arguments
		return c, nil
	})
	for name, after := range map[string]func(*Config, func()){
		"while it is decided": func(c *Config, change func()) {
			rules := c.Rules
			c.Rules = func() *policy.Rules { change(); return rules() }
		},
		"while it is recorded": func(c *Config, change func()) {
			c.Log = &memoryLog{fail: func(r audit.Record) error {
				if r.Event == audit.Started {
					change()
				}
				return nil
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tool{invoke: never(t)}, func(c *Config) {
				c.Plugins = []Plugin{plugin}
				after(c, func() { copy(kept, `{"text":"b"}`) })
			})
			if e := refused(t, r, callOf("write", `{"text":"a"}`), capability.Conflict); e.Rule != "runner.digest" {
				t.Errorf("Invoke() error = %v, want the rule runner.digest", e)
			}
		})
	}
	t.Run("by the executor's facts", func(t *testing.T) {
		x := tool{invoke: never(t), facts: func(c capability.Call) (Facts, error) { copy(c.Arguments, `{"text":"b"}`); return Facts{}, nil }}
		_, err := newRig(t, x, nil).Invoke(t.Context(), callOf("write", `{"text":"a"}`))
		wantKind(t, err, capability.Conflict)
	})
	t.Run("not at all", func(t *testing.T) {
		var digest string
		x := tool{invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			digest, _ = c.Digest()
			return echo(ctx, c)
		}}
		var decided string
		desk := openDesk(t, openStore(t))
		r := newRig(t, x, func(c *Config) { c.Plugins = []Plugin{plugin}; c.Desk = spying{desk, &decided} })
		call := callOf("destroy", `{"text":"a"}`)
		res, err := r.Invoke(t.Context(), call)
		wantKind(t, err, capability.Unapproved)
		settle(t, desk, res.Meta[MetaTicket], approval.Answer{By: call.Principal, Effect: approval.Yes, Scope: approval.Once})
		succeeds(t, r, call)
		if digest == "" || digest != decided {
			t.Errorf("digest of what ran = %s, want that of what was decided, %s", digest, decided)
		}
	})
}

type spying struct {
	Desk
	digest *string
}

func (s spying) Grants(ctx context.Context, q *policy.Request) ([]policy.Grant, error) {
	*s.digest = q.Digest
	return s.Desk.Grants(ctx, q)
}

// TestPluginArguments: other arguments are validated and decided on like any.
func TestPluginArguments(t *testing.T) {
	r := newRig(t, tool{}, func(c *Config) {
		c.Plugins = []Plugin{before(func(c capability.Call) (capability.Call, error) {
			c.Arguments = json.RawMessage(strings.Replace(string(c.Arguments), "token", "***", 1))
			return c, nil
		})}
	})
	res, err := r.Invoke(t.Context(), callOf("look", `{"text":"token"}`))
	if err != nil || res.Parts[0].Text != `{"text":"***"}` {
		t.Errorf("Invoke() = %v, %v, want the plugin's arguments", res.Parts, err)
	}
	if got := r.log.last(t).Metadata.Notes["arguments_by"]; got != "test" {
		t.Errorf("the record names %q as who changed the arguments, want test", got)
	}
}

type after func(capability.Result) (capability.Result, error)

func (after) Name() string { return "censor" }

func (f after) After(_ context.Context, _ capability.Call, r capability.Result) (capability.Result, error) {
	return f(r)
}

// TestPluginAfter: a plugin takes away from results and never makes a failure
// a success.
func TestPluginAfter(t *testing.T) {
	fails := func(context.Context, capability.Call) (capability.Result, error) {
		return capability.Result{Failed: true, Parts: []capability.Part{{Text: "secret"}}}, nil
	}
	bleach := after(func(capability.Result) (capability.Result, error) {
		return capability.Result{Parts: []capability.Part{{Text: "clean"}}}, nil
	})
	r := newRig(t, tool{invoke: fails}, func(c *Config) { c.Plugins = []Plugin{bleach} })
	res, err := r.Invoke(t.Context(), callOf("look", `{"text":"a"}`))
	if err != nil || !res.Failed || res.Parts[0].Text != "clean" {
		t.Errorf("Invoke() = %+v, %v, want a failure that says clean", res, err)
	}
	r = newRig(t, tool{invoke: fails}, func(c *Config) {
		c.Plugins = []Plugin{after(func(capability.Result) (capability.Result, error) { return capability.Result{}, errors.New("no") })}
	})
	res, _ = r.Invoke(t.Context(), callOf("look", `{"text":"a"}`))
	if raw, _ := json.Marshal(res.Parts); strings.Contains(string(raw), "secret") || !strings.Contains(string(raw), "censor withheld") {
		t.Errorf("Invoke() = %s, want the result withheld", raw)
	}
}

// TestConsent: asked, pending, granted, used once; denied stays denied.
func TestConsent(t *testing.T) {
	desk := openDesk(t, openStore(t))
	runs := 0
	x := tool{
		facts: func(capability.Call) (Facts, error) { return Facts{Argv: []string{"rm", "a b"}}, nil },
		invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
			runs++
			return echo(ctx, c)
		},
	}
	r := newRig(t, x, func(c *Config) { c.Desk = desk })
	call := callOf("destroy", `{"text":"a"}`)
	var ticket string
	for range 2 { // pending is not denied, and asks once
		res, err := r.Invoke(t.Context(), call)
		e := wantKind(t, err, capability.Unapproved)
		q, ok := errors.AsType[*Question](e)
		if !ok || q.Name != AnswerConsent || q.Ticket == "" || ticket != "" && q.Ticket != ticket {
			t.Fatalf("Invoke() error = %v with %+v, want one question with one ticket", e, q)
		}
		ticket = q.Ticket
		if rec := r.log.last(t); rec.Status != audit.Pending || res.Meta[MetaTicket] != ticket {
			t.Errorf("status %s, ticket %s, want PENDING, %s", rec.Status, res.Meta[MetaTicket], ticket)
		}
	}
	asked, err := desk.Get(t.Context(), ticket)
	if err != nil || strings.Join(asked.Question.Argv, "|") != "rm|a b" || string(asked.Question.Call.Arguments) != `{"text":"a"}` {
		t.Errorf("the question has %v %s, %v; want the exact command and arguments", asked.Question.Argv, asked.Question.Call.Arguments, err)
	}
	settle(t, desk, ticket, approval.Answer{By: call.Principal, Effect: approval.Yes, Scope: approval.Once})
	other := call
	other.Arguments = json.RawMessage(`{"text":"b"}`)
	refused(t, r, other, capability.Unapproved)
	if runs != 0 {
		t.Fatalf("a call with other arguments ran under the grant")
	}
	if _, err := r.Invoke(t.Context(), call); err != nil || runs != 1 {
		t.Fatalf("Invoke() after the grant = %v with %d runs, want one", err, runs)
	}
	if rec := r.log.last(t); rec.Metadata.Notes["grant"] == "" || rec.Decision != "allow" {
		t.Errorf("record = %s %v, want allow and the grant", rec.Decision, rec.Metadata.Notes)
	}
	res, err := r.Invoke(t.Context(), call)
	wantKind(t, err, capability.Unapproved) // once is once
	// What a person denied is denied, when the call names the ticket it was given.
	settle(t, desk, res.Meta[MetaTicket], approval.Answer{By: call.Principal, Effect: approval.No, Scope: approval.Once})
	raw, _ := json.Marshal(res.Meta[MetaTicket])
	call.Answers = map[string]json.RawMessage{AnswerConsent: raw}
	refused(t, r, call, capability.Denied)
	if runs != 1 {
		t.Errorf("the grant was used %d times, want once", runs)
	}
}

// TestConsentState: an approval of a call holds in the state in which it was asked
// about, once and for always; one for every call of the tool holds in any.
func TestConsentState(t *testing.T) {
	rules := rulesOf(t, policy.Rule{ID: "test.ask", Effect: policy.Ask, Scope: policy.Session, Capabilities: []string{"tool:write"}, Where: "test:1"})
	for covers, holds := range map[approval.Cover]bool{"": false, approval.CoverCall: false, approval.CoverTool: true} {
		desk, state := openDesk(t, openStore(t)), "page https://a.test/list"
		r := newRig(t, tool{facts: func(capability.Call) (Facts, error) { return Facts{State: state}, nil }}, func(c *Config) {
			c.Desk, c.Rules = desk, rules
		})
		call := callOf("write", `{"text":"a"}`)
		res, err := r.Invoke(t.Context(), call)
		wantKind(t, err, capability.Unapproved)
		answer := approval.Answer{By: call.Principal, Effect: approval.Yes, Scope: approval.Once}
		if covers != "" {
			answer.Scope, answer.Covers = approval.Always, covers
		}
		settle(t, desk, res.Meta[MetaTicket], answer)
		state = "page https://b.test/delete"
		if _, err := r.Invoke(t.Context(), call); (err == nil) != holds || err != nil && capability.KindOf(err) != capability.Unapproved {
			t.Errorf("covers %q: Invoke() in another state = %v, want it to hold there: %v", covers, err, holds)
		}
		state = "page https://a.test/list"
		succeeds(t, r, call)
	}
}

// TestRulesChangeWhileWaiting: a call that leaves the queue under new rules, or where
// the recent rules are others, is decided on again.
func TestRulesChangeWhileWaiting(t *testing.T) {
	old, changed := testRules(t), false
	for _, change := range []func(*Config){
		func(c *Config) { c.RecentRules = func() *policy.Rules { return nil } },
		func(c *Config) {
			c.Rules = func() *policy.Rules {
				if changed {
					return nil
				}
				return old
			}
			c.Log = &memoryLog{fail: func(rec audit.Record) error { changed = changed || rec.Event == audit.Started; return nil }}
		},
	} {
		_, err := newRig(t, tool{invoke: never(t)}, change).Invoke(t.Context(), callOf("write", `{"text":"a"}`))
		wantKind(t, err, capability.Denied)
	}
}

// TestUnwrap: policy, executor and record see the real call only.
func TestUnwrap(t *testing.T) {
	r := newRig(t, tool{}, nil)
	res, err := r.Invoke(t.Context(), callOf("invoke_capability", `{"capability":"tool:look","arguments":{"text":"in"}}`))
	if err != nil || res.Parts[0].Text != `{"text":"in"}` {
		t.Fatalf("Invoke() = %v, %v, want the inner call's result", res.Parts, err)
	}
	for _, rec := range r.log.all() {
		if rec.Target != "tool:look" {
			t.Errorf("recorded target = %s, want tool:look", rec.Target)
		}
	}
	if e := refused(t, r, callOf("invoke_capability", `{"capability":"tool:denied","arguments":{"text":"in"}}`), capability.Denied); e.Target != "tool:denied" {
		t.Errorf("refused target = %s, want tool:denied", e.Target)
	}
	refused(t, r, callOf("invoke_capability", `{"capability":"tool:look","id":"tool:denied"}`), capability.Invalid)
}

// TestAuditAfter: a closing record that could not be written is noted in the
// result and stops all later calls until the log accepts it. Then calls work
// again, and the record is in the log once.
func TestAuditAfter(t *testing.T) {
	runs := 0
	r := newRig(t, tool{invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
		runs++
		return echo(ctx, c)
	}}, nil)
	full := errors.New("no space left")
	r.log.fail = func(rec audit.Record) error {
		if rec.Event != audit.Started {
			return full
		}
		return nil
	}
	call := callOf("write", `{"text":"a"}`)
	res, err := r.Invoke(t.Context(), call)
	if err != nil || res.Meta[MetaAudit] != "degraded" || !strings.Contains(res.Parts[len(res.Parts)-1].Text, "no space left") {
		t.Errorf("Invoke() = %+v, %v, want a result that says so", res, err)
	}
	for range 2 {
		if e := refused(t, r, call, capability.Unavailable); !errors.Is(e, full) || e.Fix == "" || strings.Contains(e.Fix, "start") {
			t.Errorf("Invoke() = %v, want the cause and a fix without a restart", e)
		}
	}
	if err := r.Ready(t.Context()); runs != 1 || !errors.Is(r.Err(), full) || !errors.Is(err, full) {
		t.Errorf("after a lost record %d calls ran, Err() = %v and Ready() = %v, want 1 and the reason", runs, r.Err(), err)
	}
	r.log.fail = nil
	if res, err := r.Invoke(t.Context(), call); err != nil || res.Meta[MetaAudit] != "" || r.Err() != nil || runs != 2 {
		t.Errorf("Invoke() with room = %+v, %v with %d runs, Err() = %v; want that it runs", res.Meta, err, runs, r.Err())
	}
	var got []string
	for _, rec := range r.log.all() {
		got = append(got, fmt.Sprintf("%s late=%t", rec.Event, rec.Metadata.Notes["late"] != ""))
	}
	want := []string{
		"capability_started late=false", "capability_executed late=true", "capability_failed late=true", "capability_failed late=true",
		"capability_started late=false", "capability_executed late=false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("records = %q, want %q", got, want)
	}
}

// TestUnwritten: the number of waiting records is limited, and the log counts
// those that were dropped.
func TestUnwritten(t *testing.T) {
	r := newRig(t, tool{}, nil)
	const calls = mostUnwritten + 3
	r.log.fail = func(audit.Record) error { return errors.New("no space left") }
	for range calls {
		refused(t, r, callOf("look", `{"text":"a"}`), capability.Unavailable)
	}
	r.log.fail = nil
	if err := r.Ready(t.Context()); err != nil || r.Err() != nil {
		t.Fatalf("Ready() = %v, Err() = %v, want none", err, r.Err())
	}
	all := r.log.all()
	if len(all) != mostUnwritten || !strings.HasPrefix(all[0].Metadata.Notes["dropped"], "3 more records") || all[writtenAtOnce].Metadata.Notes["dropped"] != "" {
		t.Errorf("%d records, the first with %q; want %d and a note of 3 more", len(all), all[0].Metadata.Notes, mostUnwritten)
	}
}

// TestRecordFields: the seed's fields and ours, before and after, without raw
// arguments.
func TestRecordFields(t *testing.T) {
	x := tool{
		facts: func(capability.Call) (Facts, error) {
			return Facts{Argv: []string{"postman", "--token", "hunter2", "get"}, Tool: "postman", Args: 3, WorkDir: "/w", Isolation: json.RawMessage(`{"profile":"full"}`)}, nil
		},
		invoke: func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{Failed: true, Parts: []capability.Part{{Text: "nope"}}, Meta: map[string]string{
				MetaExitCode: "3", MetaIsolation: `{"profile":"landlock"}`, MetaTruncated: "true", MetaStdout: "70", MetaStderr: "7", MetaStdoutHash: "abc",
			}}, nil
		},
	}
	r := newRig(t, x, nil)
	res, err := r.Invoke(t.Context(), callOf("look", `{"text":"hunter2"}`))
	if err != nil {
		t.Fatal(err)
	}
	records := r.log.all()
	if len(records) != 2 {
		t.Fatalf("%d records, want 2", len(records))
	}
	first, last := records[0], records[1]
	if first.Event != audit.Started || first.Success != nil || first.Decision != "allow" || first.Rule == "" || string(first.Isolation) != `{"profile":"full"}` || first.Risk == nil {
		t.Errorf("before record = %+v, want decision, rule and isolation", first)
	}
	if last.ExitCode == nil || *last.ExitCode != 3 || *last.Success || !last.Truncated || last.ResultBytes != 77 || last.StdoutDigest == "" || last.StdoutDigest == "abc" || last.StderrDigest != "" || string(last.Isolation) != `{"profile":"landlock"}` || last.DurationMS == nil {
		t.Errorf("after record = %+v, want what came of it", last)
	}
	if first.EffectID == "" || first.EffectID != last.EffectID || res.Meta[MetaEffect] != last.EffectID {
		t.Errorf("effect ids = %q, %q, %q, want one", first.EffectID, last.EffectID, res.Meta[MetaEffect])
	}
	if last.ExtensionID != "ext" || last.Command != "look" || last.Metadata.Tool != "postman" || last.Metadata.ArgsCount != 3 || last.SessionID != "s1" || last.UserID != "ann" || last.Origin != "person" {
		t.Errorf("after record = %+v, want the seed's fields", last)
	}
	raw, _ := json.Marshal(records)
	if bytes.Contains(raw, []byte("hunter2")) {
		t.Errorf("records hold a secret: %s", raw)
	}
	for _, key := range []string{MetaState, MetaStarted, MetaEnded, MetaDuration} {
		if res.Meta[key] == "" {
			t.Errorf("Meta[%s] is empty", key)
		}
	}
}
