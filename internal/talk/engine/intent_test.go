package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// strict asks for intents, as the seed does.
func strict(s *policy.Settings) { s.Intents = policy.Strict }

func intend(name, why string) llm.ToolCall {
	if why == "" {
		return call(toolIntent, fmt.Sprintf(`{"intent":%q}`, name))
	}
	return call(toolIntent, fmt.Sprintf(`{"intent":%q,"justification":%q}`, name, why))
}

// TestS318IntentTool: the tool is the seed's and the last of the list.
func TestS318IntentTool(t *testing.T) {
	r := open(t, setting{rules: strict})
	id := r.begin(llmtest.Replies(text("Hello.")))
	r.say(id, "hello")
	tools := r.entries(id)[0].Tools
	last := tools[len(tools)-1]
	want := `{"type":"object","properties":{"intent":{"type":"string","enum":["PLAN","CODE","ANALYZE","DEBUG","WRITE_FILE","READ_FILE","EXECUTE"]},"justification":{"type":"string"}},"required":["intent"]}`
	if last.Name != "select_active_intent" || last.Description != "Select operational intent before tool execution" || string(last.Schema) != want {
		t.Errorf("the last tool is %s: %s %s", last.Name, last.Description, last.Schema)
	}
}

// TestS332NoToolWithoutIntent: a call before an intent is refused as a result in
// the seed's words, and later calls go on.
func TestS332NoToolWithoutIntent(t *testing.T) {
	r := open(t, setting{rules: strict})
	id := r.begin(llmtest.Replies(
		answers(invoke("tool:greet", `{"name":"A"}`), intend("READ_FILE", ""), invoke("tool:greet", `{"name":"B"}`)),
		text("Done."),
	))
	events := r.say(id, "hello")
	done(t, events, event.EndAnswer)
	got := resultTexts(r.entries(id))
	contains(t, "the first result", got[0], "Intent must be selected before executing tools", "select_active_intent")
	contains(t, "the second result", got[1], "The intent is READ_FILE")
	contains(t, "the third result", got[2], "hello B")
	if made := r.made(); !slices.Equal(made, []string{"tool:greet"}) {
		t.Errorf("calls = %v, want one", made)
	}
	if in := of[event.Intended](events); len(in) != 1 || in[0].Intent != "READ_FILE" || !slices.Equal(in[0].Chain, []string{"READ_FILE"}) {
		t.Errorf("Intended = %+v", in)
	}
}

// TestS333MisuseIsBlocked: what an intent does not cover is refused whatever the
// prompt says, with what is allowed and how to change it (S3.27, S3.U09).
func TestS333MisuseIsBlocked(t *testing.T) {
	r := open(t, setting{rules: strict})
	id := r.begin(llmtest.Replies(answers(intend("READ_FILE", ""), invoke("tool:save", `{"name":"A"}`)), text("I may not.")))
	done(t, r.say(id, "save it"), event.EndAnswer)
	contains(t, "the refusal", resultTexts(r.entries(id))[1], "Tool not allowed under selected intent", "CODE or WRITE_FILE", "select_active_intent")
	if n := len(r.made()); n != 0 {
		t.Errorf("%d calls were made, want none", n)
	}
}

// TestS334TheSameEveryTime: the same answers of a model give the same results,
// byte for byte.
func TestS334TheSameEveryTime(t *testing.T) {
	var first []string
	for range 3 {
		r := open(t, setting{rules: strict})
		id := r.begin(llmtest.Replies(
			answers(invoke("tool:greet", `{"name":"A"}`), intend("PLAN", ""), invoke("tool:greet", `{"name":"B"}`), intend("ANALYZE", "to look"), invoke("tool:greet", `{"name":"C"}`), invoke("tool:save", `{"name":"D"}`)),
			text("Done."),
		))
		r.say(id, "hello")
		got := resultTexts(r.entries(id))
		if first == nil {
			first = got
		}
		if !slices.Equal(first, got) {
			t.Errorf("results = %q, want %q as before", got, first)
		}
	}
}

// TestS335IntentsWithEveryProvider: the rules hold over each wire, and Gemini and
// OpenAI are narrowed in the request itself without changing what is declared
// (S3.29, S3.30).
func TestS335IntentsWithEveryProvider(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			r := open(t, setting{rules: strict})
			r.model = wired(t, w, llmtest.Replies(
				answers(invoke("tool:save", `{"name":"A"}`)), answers(intend("CODE", "")), answers(invoke("tool:save", `{"name":"A"}`)), text("Done."),
			))
			id := r.session()
			done(t, r.say(id, "save it"), event.EndAnswer)
			got := resultTexts(r.entries(id))
			contains(t, "the refusal", got[0], "Intent must be selected before executing tools")
			contains(t, "the result", got[2], "saved")
		})
	}
}

// TestS336IntentsTouchNothingElse: with and without intents the same entries are
// written but for those of the intent itself: the tool and its note.
func TestS336IntentsTouchNothingElse(t *testing.T) {
	var kinds [2][]session.Kind
	for i, set := range []func(*policy.Settings){nil, func(s *policy.Settings) { s.Intents = policy.Relaxed }} {
		r := open(t, setting{rules: set})
		id := r.begin(llmtest.Replies(answers(invoke("tool:greet", `{"name":"A"}`)), text("Done.")))
		r.say(id, "hello")
		kinds[i] = kindsOf(r.entries(id))
	}
	if !slices.Equal(kinds[0], kinds[1]) {
		t.Errorf("entries = %v without and %v with intents", kinds[0], kinds[1])
	}
}

// TestT08EveryToolUnderEveryIntent: the matrix of the seed, through the engine.
func TestT08EveryToolUnderEveryIntent(t *testing.T) {
	classes := map[string]capability.Effects{"tool:greet": reading, "tool:save": changing, "tool:far": {ReadOnly: capability.No, OpenWorld: capability.Yes, Destructive: capability.No}}
	may := map[string][]string{
		"tool:greet": {"ANALYZE", "DEBUG", "READ_FILE"},
		"tool:save":  {"CODE", "WRITE_FILE"},
		"tool:far":   {"EXECUTE"},
	}
	r := open(t, setting{
		rules: func(s *policy.Settings) {
			strict(s)
			s.Rules = append(s.Rules, policy.Rule{ID: "far", Effect: policy.Allow, Capabilities: []string{"tool:far"}, Reason: "tests", Where: "test:9"})
		},
		tools: func(r *rig) {
			r.tool("tool:far", "Reaches far", anySchema, classes["tool:far"], func(context.Context, capability.Call) (capability.Result, error) { return said("reached") })
		},
	})
	for tool := range classes {
		for _, intent := range policy.Intents() {
			args := `{"name":"A"}`
			before := r.count(tool)
			id := r.begin(llmtest.Replies(answers(intend(intent, ""), invoke(tool, args)), text("Done.")))
			r.turn(event.Input{Session: id, Text: "hello", Alone: true})
			ran := r.count(tool) > before
			if want := slices.Contains(may[tool], intent); ran != want {
				t.Errorf("%s under %s ran: %v, want %v (%q)", tool, intent, ran, want, resultTexts(r.entries(id)))
			}
		}
	}
}

// TestT08SeveralSelections: the first counts, a second needs a reason and is
// chained and recorded, an unknown one is refused with all names (K3.06, K3.08).
func TestT08SeveralSelections(t *testing.T) {
	r := open(t, setting{rules: strict})
	id := r.begin(llmtest.Replies(
		answers(intend("READ_FILE", ""), intend("CODE", ""), intend("HACK", "because"), invoke("tool:save", `{"name":"A"}`), intend("CODE", "the file must be saved"), invoke("tool:save", `{"name":"A"}`)),
		text("Done."),
	))
	events := r.say(id, "hello")
	entries := r.entries(id)
	got := resultTexts(entries)
	contains(t, "a second without a reason", got[1], "The intent of this turn is READ_FILE", "justification")
	contains(t, "an unknown one", got[2], `Unknown intent "HACK"`, "PLAN, CODE, ANALYZE, DEBUG, WRITE_FILE, READ_FILE, EXECUTE")
	contains(t, "the call between", got[3], "Tool not allowed under selected intent")
	contains(t, "the last", got[5], "saved")
	in := of[event.Intended](events)
	if len(in) != 2 || !slices.Equal(in[1].Chain, []string{"READ_FILE", "CODE"}) || in[1].Justification != "the file must be saved" {
		t.Errorf("Intended = %+v, want the chain", in)
	}
	var notes []string
	for _, e := range entries {
		if e.Kind == session.Note && e.Name == "intent" {
			notes = append(notes, e.Text)
		}
	}
	if !slices.Equal(notes, []string{"READ_FILE", "CODE: the file must be saved"}) {
		t.Errorf("recorded = %q", notes)
	}
}

// TestT08TurnAndRequest: an intent holds for the turn and no longer; with the
// literal rule it holds for one request (C19, S3.23, S3.28).
func TestT08TurnAndRequest(t *testing.T) {
	for _, request := range []bool{false, true} {
		r := open(t, setting{rules: strict, config: func(c *Config) {
			inner := c.Intents
			c.Intents = func(at string) IntentRules {
				rules := inner(at)
				rules.Request = request
				return rules
			}
		}})
		id := r.begin(llmtest.Replies(
			answers(intend("READ_FILE", ""), invoke("tool:greet", `{"name":"A"}`)), answers(invoke("tool:greet", `{"name":"B"}`)), text("Done."),
			answers(invoke("tool:greet", `{"name":"C"}`)), text("Done."),
		))
		r.say(id, "hello")
		r.say(id, "once more")
		got := resultTexts(r.entries(id))
		if ok := strings.Contains(got[2], "hello B"); ok == request {
			t.Errorf("request %v: the next request gave %q", request, got[2])
		}
		contains(t, "the next turn", got[3], "Intent must be selected before executing tools")
	}
}

// TestS338RememberedIntent: with Remember set, an intent also holds in the next
// turn.
func TestS338RememberedIntent(t *testing.T) {
	r := open(t, setting{rules: strict, config: func(c *Config) {
		inner := c.Intents
		c.Intents = func(at string) IntentRules {
			rules := inner(at)
			rules.Remember = true
			return rules
		}
	}})
	id := r.begin(llmtest.Replies(
		answers(intend("READ_FILE", ""), invoke("tool:greet", `{"name":"A"}`)), text("Done."), answers(invoke("tool:greet", `{"name":"B"}`)), text("Done."),
	))
	r.say(id, "hello")
	r.say(id, "once more")
	contains(t, "the next turn", resultTexts(r.entries(id))[2], "hello B")
}

// TestT08Escalation: a person may have to agree to a wider intent (K3.07).
func TestT08Escalation(t *testing.T) {
	for _, yes := range []bool{false, true} {
		r := open(t, setting{rules: strict, config: func(c *Config) {
			inner := c.Intents
			c.Intents = func(at string) IntentRules {
				rules := inner(at)
				rules.Consent = func(from, to string) bool { return from == "READ_FILE" && to == "CODE" }
				return rules
			}
		}})
		id := r.begin(llmtest.Replies(answers(intend("READ_FILE", ""), intend("CODE", "must save"), invoke("tool:save", `{"name":"A"}`)), text("Done.")))
		var asked []event.Asked
		for e, err := range r.Turn(soon(t), event.Input{Principal: ada, Session: id, Text: "hello"}) {
			if err != nil {
				t.Fatal(err)
			}
			if a, ok := e.(event.Asked); ok {
				asked = append(asked, a)
				if err := r.Reply(context.Background(), ada, id, a.ID, event.Reply{Yes: yes}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(asked) != 1 || asked[0].What != event.Escalate {
			t.Fatalf("Asked = %+v, want one about the intent", asked)
		}
		if saved := r.count("tool:save") == 1; saved != yes {
			t.Errorf("reply %v: saved %v", yes, saved)
		}
		r.entries(id)
	}
}

// TestT08TwoSessionsAtOnce: an intent of one is none of the other's (K0.05).
func TestT08TwoSessionsAtOnce(t *testing.T) {
	r := open(t, setting{rules: strict})
	r.model = &llmtest.Fake{Script: func(s llmtest.Seen) llmtest.Reply {
		said := ""
		results := 0
		for _, m := range s.Request.Messages {
			for _, b := range m.Blocks {
				said += b.Text
				if b.Result != nil {
					results++
				}
			}
		}
		switch {
		case results >= 6:
			return text("Done.")
		case strings.Contains(said, "with intent") && results == 0:
			return answers(intend("READ_FILE", ""), invoke("tool:greet", `{"name":"0"}`))
		}
		return answers(invoke("tool:greet", fmt.Sprintf(`{"name":"%d"}`, results)))
	}}
	var wg sync.WaitGroup
	for i := range 20 {
		id, with := r.session(), i%2 == 0
		wg.Go(func() {
			message := "without"
			if with {
				message = "with intent"
			}
			events, err := r.try(soon(t), event.Input{Session: id, Text: message, Alone: true})
			if err != nil {
				t.Error(err)
			}
			for _, f := range of[event.Finished](events) {
				if f.Target == "tool:greet" && (f.Error == "") != with {
					t.Errorf("%s: %+v", message, f)
				}
			}
		})
	}
	wg.Wait()
}

// TestT08AbortAndRetryEndTheIntent: a turn that is taken up again after an abort
// has no intent, and nor has one that repeats a message.
func TestT08AbortAndRetryEndTheIntent(t *testing.T) {
	r := open(t, setting{rules: strict})
	id := r.begin(llmtest.Replies(answers(intend("READ_FILE", "")), text("cut short"), answers(invoke("tool:greet", `{"name":"B"}`)), text("Done.")))
	for e, err := range r.Turn(soon(t), event.Input{Principal: ada, Session: id, Text: "hello"}) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.(event.Delta); ok && d.Text != "" {
			break
		}
	}
	r.entries(id)
	done(t, r.turn(event.Input{Session: id, Continue: true}), event.EndAnswer)
	got := resultTexts(r.entries(id))
	contains(t, "after the abort", got[len(got)-1], "Intent must be selected before executing tools")
}

// TestT08HalfACallIsNone: a stream that breaks off after a call has no effect,
// and the call that comes whole has it once (K3.04).
func TestT08HalfACallIsNone(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(
		llmtest.Reply{Text: "I save it now, and then", Calls: []llm.ToolCall{invoke("tool:save", `{"name":"A"}`)}, Fault: llmtest.Cut, Fragments: 2},
		answers(invoke("tool:save", `{"name":"A"}`)), text("Done."),
	))
	done(t, r.say(id, "hello"), event.EndAnswer)
	if n := r.count("tool:save"); n != 1 {
		t.Errorf("tool:save ran %d times, want once", n)
	}
	r.entries(id)
}
