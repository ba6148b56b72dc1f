package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/talk/event"
	"ken/llm"
	"ken/llm/llmtest"
)

// settle approves or denies what was asked last.
func (r *rig) settle(effect approval.Effect) {
	r.t.Helper()
	if _, err := r.desk.Settle(context.Background(), r.asked.Ticket, approval.Answer{By: ada, Effect: effect, Scope: approval.Once}); err != nil {
		r.t.Fatal(err)
	}
}

// TestConsent: a call waits at the desk and is made once it is approved. A denial
// is a result. If no person can be asked, or the one who could leaves, the call
// stays pending; a turn that asks nothing goes on. What the model asks, and what a
// capability asks, reaches the person in the same way.
func TestConsent(t *testing.T) {
	danger := setting{tools: saying("tool:danger", capability.Effects{ReadOnly: capability.No, Destructive: capability.Yes}, "deleted")}
	dangerous := invoke("tool:danger", `{}`)
	three := []llmtest.Reply{answers(greet("A"), dangerous, greet("B")), text("Done.")}
	one := []llmtest.Reply{answers(dangerous), text("Fine.")}
	question := []llmtest.Reply{answers(call(toolAsk, `{"question":"Which one?","choices":["red","blue"]}`)), text("So be it.")}
	all := []string{"tool:greet", "tool:danger", "tool:greet"}
	// at is a turn with an answer at the desk.
	at := func(effect approval.Effect) []step {
		return []step{func(r *rig, id string) {
			done(t, r.watch(r.t.Context(), event.Input{Session: id, Text: "go"}, func(e event.Event) {
				if a, ok := e.(event.Asked); ok {
					if a.What != event.Consent || a.Call.Target != "tool:danger" || a.Ticket == "" || len(a.Lines) == 0 {
						t.Errorf("Asked = %+v", a)
					}
					r.settle(effect)
				}
			}), event.EndAnswer)
			if a := of[event.Answered](r.events); len(a) != 1 || a[0].Yes != (effect == approval.Yes) {
				t.Errorf("Answered = %+v", a)
			}
		}}
	}
	// left is a turn whose person leaves at the first question.
	left := func(want event.End) step {
		return func(r *rig, id string) {
			leave := make(chan struct{})
			done(t, r.watch(r.t.Context(), event.Input{Session: id, Text: "go", Leave: leave}, func(e event.Event) {
				if is[event.Asked](e) {
					close(leave)
				}
			}), want)
		}
	}
	tell(t, []story{
		{name: "approved", setting: danger, script: three, steps: at(approval.Yes), made: all, results: []string{"hello A", "deleted", "hello B"}},
		{name: "denied", setting: danger, script: three, steps: at(approval.No), made: []string{"tool:greet", "tool:greet"}, results: []string{"hello A", "ada denied request", "hello B"}},
		{name: "alone", setting: danger, script: three, steps: []step{
			alone("go", event.EndWaiting),
			func(r *rig, _ string) { contains(t, "why", done(t, r.events, event.EndWaiting).Why, "tool:danger") },
			stays(1), goesOn(event.EndWaiting), settled(approval.Yes), goesOn(event.EndAnswer),
		}, made: all, results: []string{"hello A", "deleted", "hello B"}},
		{name: "the user goes on instead", setting: danger, script: one, steps: []step{alone("go", event.EndWaiting), says("never mind", event.EndAnswer)}, made: []string{}, results: []string{"Nobody has refused it"}},
		{
			name: "who could be asked leaves", setting: danger, script: one, steps: []step{left(event.EndWaiting), stays(0), settled(approval.Yes), goesOn(event.EndAnswer)},
			made: []string{"tool:danger"}, results: []string{"deleted"},
		},
		{name: "leaving before a question", script: question, steps: []step{left(event.EndWaiting), stays(0), replied(event.Reply{Text: "blue"}), goesOn(event.EndAnswer)}, results: []string{"The user answered: blue"}},
		{
			name: "leaving at a limit", setting: setting{config: terms(Terms{Limits: Limits{Steps: 1}})}, script: []llmtest.Reply{answers(greet("A")), text("Done.")},
			steps: []step{left(event.EndLimit)}, results: []string{"hello A"},
		},
		{
			name: "having left, and nothing is asked", script: []llmtest.Reply{answers(greet("A")), text("Done.")}, steps: []step{func(r *rig, id string) {
				gone := make(chan struct{})
				close(gone)
				done(t, r.turn(event.Input{Session: id, Text: "go", Leave: gone}), event.EndAnswer)
			}}, results: []string{"hello A"},
		},
		{
			name: "the model asks", script: question, steps: []step{answered("paint it", event.Ask, event.Reply{Text: "blue"})}, results: []string{"The user answered: blue"},
			check: func(t *testing.T, r *rig, _ string) {
				if a := r.asked; a.Text != "Which one?" || !slices.Equal(a.Choice, []string{"red", "blue"}) {
					t.Errorf("Asked = %+v", a)
				}
			},
		},
		{name: "the model asks, and nobody else answers", script: question, steps: []step{
			alone("paint it", event.EndWaiting),
			func(r *rig, id string) {
				if err := r.Reply(context.Background(), capability.Principal{ID: "eve"}, id, r.asked.ID, event.Reply{Text: "black"}); err == nil {
					t.Error("somebody else replied")
				}
				if err := r.Reply(context.Background(), ada, id, "9.9.9", event.Reply{Text: "black"}); capability.KindOf(err) != capability.NotFound {
					t.Errorf("Reply to nothing = %v, want NotFound", err)
				}
			},
			replied(event.Reply{Text: "red"}), goesOn(event.EndAnswer),
		}, results: []string{"The user answered: red"}},
		{
			name: "a capability asks", setting: setting{tools: func(r *rig) {
				r.tool("tool:book", "Books a table", anySchema, changing, func(_ context.Context, c capability.Call) (capability.Result, error) {
					if a := c.Answers["people"]; a != nil {
						return said("booked with " + string(a) + " " + c.State)
					}
					return capability.Result{}, &capability.Error{Kind: capability.InputNeeded, Op: "call", Target: "tool:book", Err: &capability.Inquiry{
						Requests: map[string]json.RawMessage{"people": json.RawMessage(`{"method":"elicitation/create","params":{"message":"How many?"}}`)}, State: "s1",
					}}
				})
			}, rules: func(s *policy.Settings) {
				s.Rules = append(s.Rules, policy.Rule{ID: "book", Effect: policy.Allow, Capabilities: []string{"tool:book"}, Reason: "tests", Where: "test:3"})
			}}, script: []llmtest.Reply{answers(invoke("tool:book", `{}`)), text("Done.")},
			steps:   []step{answered("book", event.Inquiry, event.Reply{Answers: map[string]json.RawMessage{"people": json.RawMessage(`{"action":"accept","content":{"n":4}}`)}})},
			results: []string{`booked with {"action":"accept","content":{"n":4}} s1`},
			check: func(t *testing.T, r *rig, _ string) {
				contains(t, "the request", string(r.asked.Requests["people"]), "How many?")
			},
		},
	}, inMemory)
}

// TestRefusedIsNoted: that a call was refused is in the session for people, in
// words that no tool can write.
func TestRefusedIsNoted(t *testing.T) {
	r := open(t, setting{tools: func(r *rig) {
		r.tool("tool:closed", "Is forbidden", anySchema, capability.Effects{ReadOnly: capability.Yes}, func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{}, &capability.Error{Kind: capability.Denied, Op: "call", Target: "tool:closed", Err: errors.New("a rule forbids it")}
		})
	}})
	id := r.begin(llmtest.Replies(answers(invoke("tool:closed", `{}`), greet("A")), text("Done.")))
	events := r.turn(event.Input{Session: id, Text: "go", Alone: true})
	done(t, events, event.EndAnswer)
	var want []string // the two run at once and end in any order
	for _, f := range of[event.Finished](events) {
		if f.Kind == "denied" {
			want = append(want, f.ID+" denied")
		}
	}
	if got := notes(r.entries(id), "refused"); len(want) != 1 || !slices.Equal(got, want) {
		t.Errorf("notes = %q, want %q, and one of them", got, want)
	}
}

// pay is a tool that asks who is to be paid, pays, and then takes so long that
// its process ends before it does.
func pay(r *rig) {
	r.tool("tool:slowpay", "Pay money", anySchema, changing, func(ctx context.Context, c capability.Call) (capability.Result, error) {
		if c.Answers["who"] == nil {
			return capability.Result{}, &capability.Inquiry{Requests: map[string]json.RawMessage{"who": json.RawMessage(`{"method":"elicitation/create","params":{"message":"who?"}}`)}}
		}
		_, _ = c.Live.Write([]byte("paid"))
		<-ctx.Done()
		return capability.Result{}, ctx.Err()
	})
}

// TestRepliesAreOfAKind: what a person replied to one question is no answer to
// another, and a yes to doing something once more counts once.
func TestRepliesAreOfAKind(t *testing.T) {
	yes := event.Reply{Yes: true, Answers: map[string]json.RawMessage{"who": json.RawMessage(`{"action":"accept","content":{}}`)}}
	r := open(t, setting{tools: pay})
	id := r.begin(llmtest.Replies(answers(invoke("tool:slowpay", `{}`)), text("Done.")))
	paid := func(want int) {
		t.Helper()
		r.mu.Lock()
		defer r.mu.Unlock()
		n := len(slices.DeleteFunc(slices.Clone(r.calls), func(c capability.Call) bool { return c.Answers["who"] == nil }))
		if n != want {
			t.Fatalf("it paid %d times, and a person had agreed to %d", n, want)
		}
	}
	again := func() {
		t.Helper()
		r.asked = event.Asked{}
		goesOn(event.EndWaiting)(r, id)
		if r.asked.What != event.Again {
			t.Fatalf("Asked = %+v, want whether to pay again", r.asked)
		}
	}
	r.crashAt(event.Input{Session: id, Text: "pay"}, yes, is[event.Output])
	paid(1)
	again()
	paid(1)
	replied(yes)(r, id)
	r.crashAt(event.Input{Session: id, Continue: true}, yes, is[event.Output])
	paid(2)
	again()
	paid(2)
	// Who goes on now leaves it open whether it happened.
	done(t, r.say(id, "never mind"), event.EndAnswer)
	contains(t, "the result", strings.Join(resultTexts(r.entries(id)), "|"), notKnown, "A person was asked whether to make it again")
}

// TestAbortWhileAsked: a call that asks something of its own is not said to have
// done nothing when its turn is aborted.
func TestAbortWhileAsked(t *testing.T) {
	tell(t, []story{{
		name: "it asks", setting: setting{tools: pay}, script: []llmtest.Reply{answers(invoke("tool:slowpay", `{}`)), text("Done.")},
		steps: []step{aborted("pay", is[event.Asked])}, results: []string{"It is not known whether it did anything"},
	}}, inMemory)
}

// resultsIn returns the results of messages.
func resultsIn(messages []llm.Message) (out []*llm.ToolResult) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Result != nil {
				out = append(out, b.Result)
			}
		}
	}
	return out
}
