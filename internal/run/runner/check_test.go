package runner

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/store"
)

// checked is an executor with a check.
type checked struct {
	tool
	check func(context.Context, capability.Call) (capability.Result, error)
}

func (x checked) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	return x.check(ctx, call)
}

// asking is a desk that grants nothing and counts its questions.
type asking struct {
	asked  int
	grants []policy.Grant
}

func (a *asking) Grants(context.Context, *policy.Request) ([]policy.Grant, error) {
	return a.grants, nil
}

func (a *asking) Ask(context.Context, approval.Question) (approval.Ticket, error) {
	a.asked++
	return approval.Ticket{ID: "t1", State: approval.Pending}, nil
}

func (a *asking) Consume(context.Context, string) (approval.Grant, error) {
	return approval.Grant{}, nil
}

func (a *asking) Known(*policy.Request) ([]policy.Grant, bool) { return nil, false }

func (a *asking) Spend(string) (*approval.Spending, bool) { return nil, false }

func (a *asking) Shares(*store.Store) bool { return false }

func stale() error {
	return &capability.Error{Kind: capability.Conflict, Op: "write", Target: "a.txt", Rule: "files.stale", Err: errors.New("the file changed since it was read"), Fix: "read it again"}
}

func refuses(_ context.Context, _ capability.Call) (capability.Result, error) {
	return capability.Result{}, stale()
}

func fails(context.Context, capability.Call) (capability.Result, error) {
	return capability.Result{Failed: true, Parts: []capability.Part{{Text: "no such program"}}, Meta: map[string]string{"tool": "x"}}, nil
}

// TestCheckBeforeAsking: no approval is asked for a call that must fail; its result
// and its record are those that running it would have produced.
func TestCheckBeforeAsking(t *testing.T) {
	for name, fate := range map[string]func(context.Context, capability.Call) (capability.Result, error){"an error": refuses, "a failed result": fails} {
		t.Run(name, func(t *testing.T) {
			desk := &asking{}
			with := func(invoke func(context.Context, capability.Call) (capability.Result, error)) *rig {
				return newRig(t, tool{}, func(c *Config) {
					c.Desk, c.Now = desk, func() time.Time { return time.Unix(1, 0) }
					c.Executors = Executors{"tool:*": checked{tool{invoke: invoke, schema: noteSchema}, fate}}
				})
			}
			r := with(never(t))
			got, err := r.Invoke(t.Context(), callOf("destroy", `{"text":"a"}`))
			if desk.asked != 0 {
				t.Errorf("%d questions were asked, want none", desk.asked)
			}
			ran := with(fate)
			want, failed := ran.Invoke(t.Context(), callOf("write", `{"text":"a"}`)) // which is allowed
			for _, res := range []capability.Result{got, want} {
				delete(res.Meta, MetaEffect) // the name of what ran
			}
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, failed) {
				t.Errorf("Invoke() = %+v, %v, want what running gives: %+v, %v", got, err, want, failed)
			}
			records := r.log.all()
			if len(records) != 1 || records[0].Status != audit.CallFailed || records[0].Decision != "ask" || records[0].Metadata.Notes["check"] == "" {
				t.Errorf("records = %+v, want one that closes the call and says why nobody was asked", records)
			}
			if (records[0].Error == nil) != (err == nil) {
				t.Errorf("recorded error = %v, want %v", records[0].Error, err)
			}
		})
	}
}

// TestCheckTellsNothingNew: the rules come first, and nothing is looked at that
// the caller may not read without asking, or that is agreed to already.
func TestCheckTellsNothingNew(t *testing.T) {
	reads := func(paths ...policy.Path) func(capability.Call) (Facts, error) {
		return func(capability.Call) (Facts, error) { return Facts{Arguments: policy.Facts{Paths: paths}}, nil }
	}
	worksIn := func(dir string) func(capability.Call) (Facts, error) {
		return func(capability.Call) (Facts, error) { return Facts{WorkDir: dir}, nil }
	}
	plans := func(e policy.Effect) func(*policy.Settings) {
		return func(s *policy.Settings) {
			s.Rules = append(s.Rules, policy.Rule{ID: "plans", Effect: e, Paths: []string{"plans/**"}, Access: "read", Where: "test:3"})
		}
	}
	granted := &asking{grants: []policy.Grant{{ID: "g1", Principal: "ann", Capability: "tool:destroy", Digest: digestOf(t, callOf("destroy", `{"text":"a"}`))}}}
	no := func(s *policy.Settings) {}
	for name, tt := range map[string]struct {
		target  string
		facts   func(capability.Call) (Facts, error)
		rules   func(*policy.Settings)
		desk    Desk
		looks   bool
		kind    capability.ErrorKind
		invoked bool
	}{
		"asked":                     {target: "destroy", facts: reads(policy.Path{Name: "a.txt", Write: true}), rules: no, desk: &asking{}, looks: true, kind: capability.Conflict},
		"allowed":                   {target: "write", facts: reads(), rules: no, desk: &asking{}, invoked: true},
		"denied":                    {target: "denied", facts: reads(), rules: no, desk: &asking{}, kind: capability.Denied},
		"nobody to ask":             {target: "destroy", facts: reads(), rules: no, kind: capability.Denied},
		"agreed to":                 {target: "destroy", facts: reads(), rules: no, desk: granted, invoked: true},
		"a secret is written":       {target: "destroy", facts: reads(policy.Path{Name: "a.txt"}, policy.Path{Name: ".env", Write: true}), rules: no, desk: &asking{}, kind: capability.Unapproved},
		"outside of the workspace":  {target: "destroy", facts: reads(policy.Path{Name: "/srv/a"}), rules: no, desk: &asking{}, kind: capability.Unapproved},
		"a rule asks about reading": {target: "destroy", facts: reads(policy.Path{Name: "plans/a", Write: true}), desk: &asking{}, kind: capability.Unapproved, rules: plans(policy.Ask)},
		"run where nobody may read": {target: "destroy", facts: worksIn("plans/x"), desk: &asking{}, kind: capability.Unapproved, rules: plans(policy.Deny)},
		"run where a rule asks":     {target: "destroy", facts: worksIn("plans/x"), desk: &asking{}, kind: capability.Unapproved, rules: plans(policy.Ask)},
		"run in another folder":     {target: "destroy", facts: worksIn("drafts/x"), desk: &asking{}, looks: true, kind: capability.Conflict, rules: plans(policy.Deny)},
		"run in the workspace":      {target: "destroy", facts: worksIn("."), desk: &asking{}, looks: true, kind: capability.Conflict, rules: plans(policy.Deny)},
		"run in a folder of Ken's":  {target: "destroy", facts: worksIn(t.TempDir()), desk: &asking{}, looks: true, kind: capability.Conflict, rules: plans(policy.Deny)},
		"reading is off": {target: "destroy", facts: reads(policy.Path{Name: "a.txt", Write: true}), desk: &asking{}, kind: capability.Unapproved, rules: func(s *policy.Settings) {
			s.Rules = append(s.Rules, policy.Rule{ID: "off", Effect: policy.Deny, Capabilities: []string{"tool:read_file"}, Where: "test:4"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			looked, invoked := false, false
			x := checked{tool{schema: noteSchema, facts: tt.facts, invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
				invoked = true
				return echo(ctx, c)
			}}, func(context.Context, capability.Call) (capability.Result, error) {
				looked = true
				return capability.Result{}, stale()
			}}
			r := newRig(t, x.tool, func(c *Config) {
				c.Desk, c.Executors = tt.desk, Executors{"tool:*": x}
				s := c.Rules().Settings()
				tt.rules(&s)
				c.Rules = compiled(t, s)
			})
			_, err := r.Invoke(t.Context(), callOf(tt.target, `{"text":"a"}`))
			if looked != tt.looks || invoked != tt.invoked {
				t.Errorf("looked %v, invoked %v; want %v, %v", looked, invoked, tt.looks, tt.invoked)
			}
			if !tt.invoked {
				wantKind(t, err, tt.kind)
			} else if err != nil {
				t.Errorf("Invoke() = %v, want that it ran", err)
			}
		})
	}
}

func digestOf(t *testing.T, call capability.Call) string {
	t.Helper()
	call.CapabilityHash = "hash-" + strings.TrimPrefix(string(call.Target), "tool:")
	d, err := call.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCheckThatBreaks counts for nothing: the person is asked all the same, and
// what hangs holds up neither the call nor, for longer, other checks.
func TestCheckThatBreaks(t *testing.T) {
	hang := make(chan struct{})
	for name, check := range map[string]func(context.Context, capability.Call) (capability.Result, error){
		"nothing found": func(context.Context, capability.Call) (capability.Result, error) { return capability.Result{}, nil },
		"panic":         func(context.Context, capability.Call) (capability.Result, error) { panic("secret") },
		"internal": func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{}, errors.New("x")
		},
		"slow": func(ctx context.Context, _ capability.Call) (capability.Result, error) {
			<-ctx.Done()
			return capability.Result{}, ctx.Err()
		},
		"deaf": func(context.Context, capability.Call) (capability.Result, error) {
			<-hang
			return capability.Result{}, stale()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang = make(chan struct{})
				desk := &asking{}
				r := newRig(t, tool{invoke: never(t)}, func(c *Config) {
					c.Desk = desk
					c.Executors = Executors{"tool:*": checked{tool{invoke: never(t), schema: noteSchema}, check}}
				})
				for i := range checksAtOnce + 2 {
					begin := time.Now()
					refused(t, r, callOf("destroy", `{"text":"a"}`), capability.Unapproved)
					if took := time.Since(begin); took > checkTime || desk.asked != i+1 {
						t.Errorf("call %d: %d questions after %v, want one more after at most %v", i, desk.asked, took, checkTime)
					}
				}
				close(hang)
				synctest.Wait()
				if n := len(r.checks); n != 0 {
					t.Errorf("%d places for checks are taken, want none", n)
				}
			})
		})
	}
}

// TestCheckGetsACopy: a check gets the call as running would,
// without what people told Ken, and cannot change it.
func TestCheckGetsACopy(t *testing.T) {
	var got capability.Call
	r := newRig(t, tool{}, func(c *Config) {
		c.Desk = &asking{}
		c.Executors = Executors{"tool:*": checked{tool{invoke: never(t), schema: noteSchema}, func(_ context.Context, call capability.Call) (capability.Result, error) {
			got = call
			got.Arguments = slices.Clone(call.Arguments)
			clear(call.Arguments)
			return capability.Result{}, nil
		}}}
	})
	call := callOf("destroy", `{"text":"a"}`)
	call.Answers = map[string]json.RawMessage{AnswerConsent: json.RawMessage(`"t0"`), "other": json.RawMessage(`1`)}
	refused(t, r, call, capability.Unapproved)
	if string(got.Arguments) != `{"text":"a"}` || got.Answers[AnswerConsent] != nil || got.Answers["other"] == nil || got.Live != nil {
		t.Errorf("the check got %+v, want the call and no word of Ken's", got)
	}
	if string(call.Arguments) != `{"text":"a"}` {
		t.Errorf("the caller's arguments are %q now", call.Arguments)
	}
}
