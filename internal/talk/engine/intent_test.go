package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// strict asks for intents, as the seed does.
func strict(s *policy.Settings) { s.Intents = policy.Strict }

// withIntents asks for them with other rules than the seed's.
func withIntents(change func(*IntentRules)) setting {
	return setting{rules: strict, config: func(c *Config) {
		inner := c.Intents
		c.Intents = func(at string) IntentRules {
			rules := inner(at)
			change(&rules)
			return rules
		}
	}}
}

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

// TestT08Intents: what a model must say before it calls, in the seed's words, and
// how long that holds (S3.23, S3.27, S3.28, S3.32, S3.33, S3.38, S3.U09, C19).
func TestT08Intents(t *testing.T) {
	const (
		none    = "Intent must be selected before executing tools…select_active_intent"
		wrong   = "Tool not allowed under selected intent"
		reading = "The intent is READ_FILE"
	)
	var (
		strictly = setting{rules: strict}
		request  = withIntents(func(r *IntentRules) { r.Request = true })
		remember = withIntents(func(r *IntentRules) { r.Remember = true })
		consent  = withIntents(func(r *IntentRules) {
			r.Consent = func(from, to string) bool { return from == "READ_FILE" && to == "CODE" }
		})
		twice  = []step{says("hello", event.EndAnswer), says("once more", event.EndAnswer)}
		waited = []step{alone("hello", event.EndWaiting), replied(event.Reply{Text: "A"}), goesOn(event.EndAnswer)}
		read   = intend("READ_FILE", "")
		code   = intend("CODE", "")
		ok     = text("Done.")
		greets = []string{"tool:greet"}
		saves  = []string{"tool:save"}
	)
	chain := func(intents ...string) func(*testing.T, *rig, string) {
		return func(t *testing.T, r *rig, id string) {
			in := of[event.Intended](r.events)
			if n := len(in); n != len(intents) || !slices.Equal(in[n-1].Chain, intents) || in[n-1].Intent != intents[n-1] {
				t.Errorf("Intended = %+v, want the chain %q", in, intents)
			}
		}
	}
	tell(t, []story{
		{
			name: "no tool without one", setting: strictly, script: []llmtest.Reply{answers(greet("A"), read, greet("B")), ok},
			made: greets, results: []string{none, reading, "hello B"}, check: chain("READ_FILE"),
		},
		{
			name: "what it does not cover", setting: strictly, script: []llmtest.Reply{answers(read, save("A")), ok},
			made: []string{}, results: []string{reading, wrong + "…CODE or WRITE_FILE…select_active_intent"},
		},
		{ // the first counts, a second needs a reason and is chained and recorded, an unknown one is refused with all names (K3.06, K3.08)
			name: "several", setting: strictly, script: []llmtest.Reply{answers(read, code, intend("HACK", "because"), save("A"), intend("CODE", "the file must be saved"), save("A")), ok},
			made: saves, results: []string{
				reading, "The intent of this turn is READ_FILE…justification", `Unknown intent "HACK"…PLAN, CODE, ANALYZE, DEBUG, WRITE_FILE, READ_FILE, EXECUTE`, wrong, "CODE", "saved",
			},
			check: func(t *testing.T, r *rig, id string) {
				chain("READ_FILE", "CODE")(t, r, id)
				if got := notes(r.entries(id), "intent"); !slices.Equal(got, []string{"READ_FILE", "CODE: the file must be saved"}) {
					t.Errorf("recorded = %q", got)
				}
			},
		},
		{
			name: "it holds for the turn and no longer", setting: strictly, script: []llmtest.Reply{answers(read, greet("A")), answers(greet("B")), ok, answers(greet("C")), ok}, steps: twice,
			results: []string{reading, "hello A", "hello B", none},
		},
		{
			name: "it holds for one request", setting: request, script: []llmtest.Reply{answers(read, greet("A")), answers(greet("B")), ok, answers(greet("C")), ok}, steps: twice,
			results: []string{reading, "hello A", none, none},
		},
		{
			name: "it is remembered in the next turn", setting: remember, script: []llmtest.Reply{answers(read, greet("A")), ok, answers(greet("B")), ok}, steps: twice,
			results: []string{reading, "hello A", "hello B"},
		},
		{ // K3.07
			name: "a person agrees to a wider one", setting: consent, script: []llmtest.Reply{answers(read, intend("CODE", "must save"), save("A")), ok},
			steps: []step{answered("hello", event.Escalate, event.Reply{Yes: true})}, made: saves, results: []string{reading, "CODE", "saved"},
		},
		{
			name: "a person does not agree", setting: consent, script: []llmtest.Reply{answers(read, intend("CODE", "must save"), save("A")), ok},
			steps: []step{answered("hello", event.Escalate, event.Reply{})}, made: []string{}, results: []string{reading, "", wrong},
		},
		{
			name: "a failed turn that is tried again has none", setting: strictly, script: []llmtest.Reply{answers(read), {Fault: llmtest.Auth}, answers(greet("A")), ok},
			steps: []step{says("hello", event.EndFailed), goesOn(event.EndAnswer)}, results: []string{reading, none},
		},
		{
			name: "an aborted turn that is taken up has none", setting: strictly, script: []llmtest.Reply{answers(read), text("cut short"), answers(greet("A")), ok},
			steps: []step{aborted("hello", is[event.Delta]), goesOn(event.EndAnswer)}, results: []string{reading, none},
		},
		{
			name: "a turn that waited for a person is the same turn", setting: strictly, script: []llmtest.Reply{answers(read, asking("Whom?")), answers(greet("A")), ok},
			steps: waited, results: []string{reading, "answered: A", "hello A"},
		},
		{
			name: "that of an earlier request does not come back", setting: request, script: []llmtest.Reply{answers(code, greet("A")), answers(asking("ok?"), save("B")), ok},
			steps: waited, made: []string{}, results: []string{"The intent is CODE", wrong, "answered: A", none},
		},
		{
			name: "a rewound turn leaves none", setting: remember, script: []llmtest.Reply{text("hi"), answers(code), ok, answers(save("B")), ok},
			steps: append(twice, rewound(2), says("again", event.EndAnswer)), made: []string{}, results: []string{none},
		},
		{
			name: "that of the turn before a rewound one counts", setting: remember, script: []llmtest.Reply{answers(code), text("hi"), answers(read), ok, answers(save("B")), ok},
			steps: append(twice, rewound(2), says("again", event.EndAnswer)), made: saves, results: []string{"The intent is CODE", "saved"},
		},
	}, inMemory)
}

// TestK311AllowedPerWire: the rules hold over every wire. Gemini and OpenAI are
// narrowed to what the intent allows, by the names under which the tools are
// declared and with Ken's own among them, while what is declared stays; for
// Anthropic nothing changes (S3.07, S3.12, S3.29, S3.30, S3.35).
func TestK311AllowedPerWire(t *testing.T) {
	testkit.CI(t, "takes many turns")
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			s := withIntents(func(rules *IntentRules) {
				rules.Allows = func(intent string, e *door.Entry) bool {
					return intent == "CODE" || policy.Of(e.Capability).Class == policy.Read
				}
			})
			s.tools = func(r *rig) { // its name is none that a wire takes
				r.tool("tool:save as…", "Save under another name", nameSchema, changing, r.does["tool:save"])
				saying("tool:look-up", reading, "seen")(r)
			}
			r := open(t, s)
			r.cfg.Terms = Terms{Delivery: model.Whole}.Always
			r.Engine = New(r.cfg)
			var seen []llmtest.Seen
			replies := llmtest.Replies(
				answers(call("save", `{"name":"A"}`)), answers(intend("READ_FILE", "")), answers(call("save", `{"name":"A"}`)),
				answers(intend("CODE", "to save it")), answers(call("save", `{"name":"A"}`)), text("Done."),
			)
			r.model = wired(t, w, func(s llmtest.Seen) llmtest.Reply {
				seen = append(seen, s)
				return replies(s)
			})
			id := r.session()
			done(t, r.say(id, "save it"), event.EndAnswer)
			declared := toolNames(seen[0].Request.Tools)
			narrowed := slices.DeleteFunc(slices.Clone(declared), func(n string) bool { return n == "save" || n == "save_as" })
			for _, name := range []string{"look-up", toolIntent, toolDescribe, toolFinish} {
				if !slices.Contains(narrowed, name) || !slices.Contains(declared, "save_as") {
					t.Fatalf("declared = %q, want %s and save_as", declared, name)
				}
			}
			for i, s := range seen {
				want := [][]string{nil, nil, narrowed, narrowed, nil, nil}[i]
				if w == llmtest.Messages {
					want = nil
					if s.Choice != seen[0].Choice {
						t.Errorf("request %d has tool_choice %s, the first had %s", i+1, s.Choice, seen[0].Choice)
					}
				}
				got := slices.Sorted(slices.Values(s.Request.Allowed))
				if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
					t.Errorf("request %d allows %q, want %q", i+1, got, want)
				}
				if !slices.EqualFunc(s.Request.Tools, seen[0].Request.Tools, func(a, b llm.Tool) bool { return a.Name == b.Name && string(a.Schema) == string(b.Schema) }) {
					t.Errorf("request %d declares other tools than the first", i+1)
				}
			}
			got := resultTexts(r.entries(id))
			contains(t, "the first refusal", got[0], "Intent must be selected before executing tools")
			contains(t, "the second refusal", got[2], "Tool not allowed under selected intent")
			contains(t, "the result", got[4], "saved")
		})
	}
}

// TestS336IntentsTouchNothingElse: with and without intents the same entries are
// written but for those of the intent itself: the tool and its note.
func TestS336IntentsTouchNothingElse(t *testing.T) {
	var kinds [2][]session.Kind
	for i, set := range []func(*policy.Settings){nil, func(s *policy.Settings) { s.Intents = policy.Relaxed }} {
		r := open(t, setting{rules: set})
		id := r.begin(llmtest.Replies(answers(greet("A")), text("Done.")))
		r.say(id, "hello")
		kinds[i] = kindsOf(r.entries(id))
	}
	if !slices.Equal(kinds[0], kinds[1]) {
		t.Errorf("entries = %v without and %v with intents", kinds[0], kinds[1])
	}
}

// TestT08EveryToolUnderEveryIntent: the matrix of the seed, through the engine.
func TestT08EveryToolUnderEveryIntent(t *testing.T) {
	testkit.CI(t, "takes many turns")
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
		tools: saying("tool:far", capability.Effects{ReadOnly: capability.No, OpenWorld: capability.Yes, Destructive: capability.No}, "reached"),
	})
	for tool := range may {
		for _, intent := range policy.Intents() {
			before := r.count(tool)
			id := r.begin(llmtest.Replies(answers(intend(intent, ""), invoke(tool, `{"name":"A"}`)), text("Done.")))
			r.turn(event.Input{Session: id, Text: "hello", Alone: true})
			ran := r.count(tool) > before
			if want := slices.Contains(may[tool], intent); ran != want {
				t.Errorf("%s under %s ran: %v, want %v (%q)", tool, intent, ran, want, resultTexts(r.entries(id)))
			}
		}
	}
}

// TestT08TwoSessionsAtOnce: an intent of one is none of the other's (K0.05).
func TestT08TwoSessionsAtOnce(t *testing.T) {
	testkit.CI(t, "takes many turns")
	r := open(t, setting{rules: strict})
	r.model = &llmtest.Fake{Script: func(s llmtest.Seen) llmtest.Reply {
		n := len(resultsIn(s.Request.Messages))
		switch {
		case n >= 6:
			return text("Done.")
		case n == 0 && strings.Contains(textOf(s.Request.Messages[0].Blocks), "with intent"):
			return answers(intend("READ_FILE", ""), greet("0"))
		}
		return answers(greet(fmt.Sprint(n)))
	}}
	var wg sync.WaitGroup
	for i := range 20 {
		id, with := r.session(), i%2 == 0
		wg.Go(func() {
			message := "without"
			if with {
				message = "with intent"
			}
			events, err := r.try(context.Background(), event.Input{Session: id, Text: message, Alone: true})
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
