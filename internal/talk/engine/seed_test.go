package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestS329NarrowedOverTheWires: once an intent is declared, OpenAI and Gemini are
// told which of the tools may be called, Anthropic is not, and what is declared
// is the same in every request, the tool for intents included (S3.07, S3.12,
// S3.29, S3.30).
func TestS329NarrowedOverTheWires(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			r := open(t, setting{rules: strict, config: func(c *Config) {
				c.Terms = Terms{Delivery: model.Whole}.Always
				inner := c.Intents
				c.Intents = func(at string) IntentRules {
					rules := inner(at)
					rules.Allows = func(intent string, e *door.Entry) bool {
						return policyOf(t).IntentAllows(intent, policy.Of(e.Capability).Class)
					}
					return rules
				}
			}})
			var seen []llmtest.Seen
			script := llmtest.Replies(answers(intend("READ_FILE", "")), answers(call("greet", `{"name":"A"}`)), text("Done."))
			r.model = wired(t, w, func(s llmtest.Seen) llmtest.Reply { seen = append(seen, s); return script(s) })
			id := r.session()
			done(t, r.say(id, "greet A"), event.EndAnswer)
			if len(seen) != 3 {
				t.Fatalf("%d requests, want 3", len(seen))
			}
			for i, s := range seen {
				if !slices.EqualFunc(s.Request.Tools, seen[0].Request.Tools, func(a, b llm.Tool) bool { return a.Name == b.Name && string(a.Schema) == string(b.Schema) }) {
					t.Errorf("request %d declares other tools", i+1)
				}
				if !slices.ContainsFunc(s.Request.Tools, func(x llm.Tool) bool { return x.Name == toolIntent }) {
					t.Errorf("request %d does not declare %s", i+1, toolIntent)
				}
				allowed := s.Request.Allowed
				if w == llmtest.Messages || i == 0 {
					if allowed != nil {
						t.Errorf("request %d is narrowed to %v, want that it is not", i+1, allowed)
					}
					continue
				}
				if !slices.Contains(allowed, "greet") || !slices.Contains(allowed, toolIntent) || slices.Contains(allowed, "save") {
					t.Errorf("request %d is narrowed to %v, want greet and %s and not save", i+1, allowed, toolIntent)
				}
			}
		})
	}
}

func policyOf(t *testing.T) *policy.Rules {
	t.Helper()
	s := policy.Defaults(policy.Personal)
	strict(&s)
	rules, err := policy.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestS3U04RepeatsAreCanonical: a call is the same however its arguments are
// spelled, and another one in between resets the count.
func TestS3U04RepeatsAreCanonical(t *testing.T) {
	spellings := []string{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`, `{"b":2,"a":1}`, "{\n\"a\":1,\"b\":2}"}
	for _, c := range []struct {
		name    string
		between bool
		end     event.End
		calls   int
	}{{"in a row", false, event.EndLimit, 3}, {"with another between", true, event.EndAnswer, 4}} {
		r := open(t, setting{tools: func(r *rig) {
			r.tool("tool:look", "Looks", anySchema, reading, r.does["tool:greet"])
		}})
		var replies []llmtest.Reply
		for i, s := range spellings {
			replies = append(replies, answers(invoke("tool:look", s)))
			if c.between {
				replies = append(replies, answers(invoke("tool:greet", fmt.Sprintf(`{"name":"%d"}`, i))))
			}
		}
		id := r.begin(llmtest.Replies(append(replies, text("Done."))...))
		done(t, r.turn(event.Input{Session: id, Text: "go", Alone: true}), c.end)
		if n := r.count("tool:look"); n != c.calls {
			t.Errorf("%s: %d calls, want %d", c.name, n, c.calls)
		}
		r.entries(id)
	}
}

// TestS311OrderOfAStep: in a step the history is made to fit, then the model is
// asked, its answer is written down, and only then are its calls made and their
// results written (S3.11, S3.17).
func TestS311OrderOfAStep(t *testing.T) {
	r := open(t, setting{})
	var id string
	before := r.does["tool:greet"]
	written := 0
	r.does["tool:greet"] = func(ctx context.Context, c capability.Call) (capability.Result, error) {
		_, entries, err := r.sessions.Read(ctx, ada, id)
		if err != nil {
			return capability.Result{}, err
		}
		for _, e := range entries {
			written += len(callsOf(e.Blocks))
		}
		return before(ctx, c)
	}
	id = r.begin(llmtest.Replies(answers(invoke("tool:greet", `{"name":"A"}`)), text("Done.")))
	var order []string
	for _, e := range r.say(id, "hello") {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var kind struct{ Type string }
		if err := json.Unmarshal(b, &kind); err != nil {
			t.Fatal(err)
		}
		if n := len(order); n == 0 || order[n-1] != kind.Type {
			order = append(order, kind.Type)
		}
	}
	if want := []string{"selected", "step", "started", "finished", "delta", "step", "done"}; !slices.Equal(order, want) {
		t.Errorf("order = %v, want %v", order, want)
	}
	if written != 1 {
		t.Errorf("when the call was made %d calls were written down, want it alone", written)
	}
}

// TestC19WaitingKeepsTheIntent: a turn that waited for a person and goes on is
// the same turn, in another process too.
func TestC19WaitingKeepsTheIntent(t *testing.T) {
	r := open(t, setting{rules: strict})
	id := r.begin(llmtest.Replies(
		answers(intend("READ_FILE", ""), call(toolAsk, `{"question":"Whom?"}`)), answers(invoke("tool:greet", `{"name":"A"}`)), text("Done."),
	))
	events := r.turn(event.Input{Session: id, Text: "hello", Alone: true})
	done(t, events, event.EndWaiting)
	if err := r.Reply(context.Background(), ada, id, of[event.Asked](events)[0].ID, event.Reply{Text: "A"}); err != nil {
		t.Fatal(err)
	}
	done(t, r.turn(event.Input{Session: id, Continue: true, Alone: true}), event.EndAnswer)
	got := resultTexts(r.entries(id))
	contains(t, "after the answer", got[len(got)-1], "hello A")
}

// TestS2U10SecondLook: finding that breaks once is tried again, and the turn has
// what was found and says that it took two.
func TestS2U10SecondLook(t *testing.T) {
	times := 0
	r := open(t, setting{tools: many(300), find: func() {
		if times++; times == 1 {
			panic("the index is gone")
		}
	}})
	id := r.begin(llmtest.Replies(text("Hello.")))
	events := r.say(id, "please do thing number 7 with colours")
	done(t, events, event.EndAnswer)
	if n := of[event.Notice](events); len(n) != 1 || n[0].Name != "degraded" {
		t.Errorf("notices = %v, want that it is degraded", n)
	}
	if s := of[event.Selected](events); len(s) != 1 || len(s[0].Added) == 0 {
		t.Errorf("Selected = %+v, want what was found", s)
	}
}

// TestS328RetryEndsTheIntent: a turn that failed and is tried again has no
// intent; one that waited for a person and goes on is still the same turn (C19).
func TestS328RetryEndsTheIntent(t *testing.T) {
	r := open(t, setting{rules: strict})
	id := r.begin(llmtest.Replies(
		answers(intend("READ_FILE", "")), llmtest.Reply{Fault: llmtest.Auth},
		answers(invoke("tool:greet", `{"name":"A"}`)), text("Done."),
	))
	done(t, r.say(id, "hello"), event.EndFailed)
	done(t, r.turn(event.Input{Session: id, Continue: true}), event.EndAnswer)
	got := resultTexts(r.entries(id))
	contains(t, "after the failure", got[len(got)-1], "Intent must be selected before executing tools")

	id = r.begin(llmtest.Replies(
		answers(intend("READ_FILE", ""), call(toolAsk, `{"question":"Whom?"}`)), answers(invoke("tool:greet", `{"name":"A"}`)), text("Done."),
	))
	events := r.turn(event.Input{Session: id, Text: "hello", Alone: true})
	done(t, events, event.EndWaiting)
	if err := r.Reply(context.Background(), ada, id, of[event.Asked](events)[0].ID, event.Reply{Text: "A"}); err != nil {
		t.Fatal(err)
	}
	done(t, r.turn(event.Input{Session: id, Continue: true, Alone: true}), event.EndAnswer)
	got = resultTexts(r.entries(id))
	contains(t, "after the answer", got[len(got)-1], "hello A")
}
