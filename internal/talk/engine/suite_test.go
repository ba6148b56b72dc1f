package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/internal/talk/provider/anthropic"
	"ken/internal/talk/provider/gemini"
	"ken/internal/talk/provider/openai"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// conversations are what every provider must carry.
func conversations() []story {
	failed := []step{says("hello there", event.EndFailed)}
	greeted := []string{"tool:greet"}
	// first checks how the first call ended for whoever listens.
	first := func(kind string) func(*testing.T, *rig, string) {
		return func(t *testing.T, r *rig, _ string) {
			if f := of[event.Finished](r.events); len(f) == 0 || f[0].Kind != kind || !f[0].Result.Failed || (f[0].Error != "") != (kind != "") {
				t.Errorf("Finished = %+v, want a failure of the kind %q", f, kind)
			}
		}
	}
	return []story{
		{name: "answer", script: []llmtest.Reply{text("Hello.")}},
		{name: "success", script: []llmtest.Reply{answers(greet("Ada")), text("Done.")}, made: greeted, results: []string{"hello Ada"}},
		{
			name: "thoughts", script: []llmtest.Reply{{Thought: "let me see", Text: "One moment.", Calls: []llm.ToolCall{greet("Ada")}}, text("Done.")},
			made: greeted, results: []string{"hello Ada"},
		},
		{
			name: "tool failure", script: []llmtest.Reply{answers(invoke("tool:broken", `{}`)), text("It broke.")},
			made: []string{"tool:broken"}, results: []string{"disk on fire"}, check: first(""),
		},
		{name: "unknown tool", script: []llmtest.Reply{answers(call("gret", `{"name":"Ada"}`)), text("Sorry.")}, made: []string{}, results: []string{"There is no tool gret. Near it: tool:greet"}},
		{
			name: "unknown tool among many", setting: setting{config: terms(Terms{Delivery: model.Bridge})},
			script: []llmtest.Reply{answers(call("great", `{"name":"Ada"}`)), answers(greet("Ada")), text("Done.")},
			made:   greeted, results: []string{"There is no tool great…tool:greet…" + toolDiscover, "hello Ada"}, check: first("not found"),
		},
		{name: "unknown tool in the envelope", script: []llmtest.Reply{answers(invoke("tool:gret", `{}`)), text("Sorry.")}, results: []string{"There is no tool tool:gret. Near it: tool:greet."}},
		{
			name: "refused tool", script: []llmtest.Reply{answers(invoke("tool:secret", `{}`)), text("I may not.")},
			made: []string{}, results: []string{"There is no tool tool:secret"}, // a hidden tool is reported like one that does not exist
		},
		{name: "schema", script: []llmtest.Reply{answers(invoke("tool:greet", `{"nom":"Ada"}`)), text("Sorry.")}, results: []string{"Its input schema"}},
		{
			name: "parallel calls", script: []llmtest.Reply{answers(greet("A"), greet("B"), call(toolDiscover, `{"query":"save a note"}`), save("C"), greet("D")), text("Done.")},
			results: []string{"hello A", "hello B", "save", "saved", "hello D"},
		},
		{name: "repaired", script: []llmtest.Reply{answers(call("greet", "```json\n{'name': 'Ada',}\n```")), text("Done.")}, made: greeted, results: []string{"hello Ada"}, notice: "repair"},
		{name: "beyond repair", script: []llmtest.Reply{answers(call("greet", `{"name": "Ad`)), text("Sorry.")}, results: []string{"not one JSON object"}},
		{
			name: "cut", script: []llmtest.Reply{{Text: "I would like to tell you that this", Fault: llmtest.Cut, Fragments: 6}, text("and that.")}, notice: "retry",
			check: func(t *testing.T, r *rig, id string) {
				want := []session.Kind{session.Prefix, session.User, session.Assistant, session.Added, session.Assistant}
				if kinds := kindsOf(r.entries(id)); !slices.Equal(kinds, want) {
					t.Errorf("entries = %v, want %v", kinds, want)
				}
			},
		},
		{
			name: "cut after a call", script: []llmtest.Reply{
				{Text: "I save it now, and then", Calls: []llm.ToolCall{save("A")}, Fault: llmtest.Cut, Fragments: 2}, answers(save("A")), text("Done."),
			},
			made: []string{"tool:save"}, results: []string{"saved"}, // half a call has no effect, and the whole one has it once (K3.04)
		},
		{name: "cut twice", script: []llmtest.Reply{{Text: "I would like to", Fault: llmtest.Cut}, {Text: "I would like to", Fault: llmtest.Cut}}, steps: failed, notice: "retry"},
		{
			name: "garbage", script: slices.Repeat([]llmtest.Reply{{Fault: "garbage"}}, 3), steps: failed,
			check: func(t *testing.T, r *rig, _ string) { // nothing of an answer came, so none broke off
				for _, n := range of[event.Notice](r.events) {
					if strings.Contains(n.Text, "in the middle") {
						t.Errorf("the notice says %q", n.Text)
					}
				}
			},
		},
		{name: "500", script: slices.Repeat([]llmtest.Reply{{Fault: llmtest.ServerError}}, 4), steps: failed},
		{name: "auth", script: []llmtest.Reply{{Fault: llmtest.Auth}}, steps: failed},
		{name: "overflow", script: slices.Repeat([]llmtest.Reply{{Fault: llmtest.TooLong}}, 4), steps: failed},
		{name: "refusal", script: []llmtest.Reply{{Stop: llm.StopRefuse}}, steps: failed},
		{
			name: "finish", script: []llmtest.Reply{answers(call(toolFinish, `{"answer":"That is all."}`), save("x"))},
			made: []string{}, results: []string{"The turn is over", "finish came before it"},
			check: func(t *testing.T, r *rig, _ string) {
				if d := done(t, r.events, event.EndAnswer); d.Text != "That is all." {
					t.Errorf("the answer is %q", d.Text)
				}
			},
		},
		{name: "nothing", script: []llmtest.Reply{{Stop: llm.StopEnd}, text("Oh, hello.")}},
		{name: "a tool that is no tool's name", script: []llmtest.Reply{answers(call("functions.greet:0", `{"name":"A"}`)), text("Sorry.")}, results: []string{"There is no tool functions.greet:0"}},
		{
			name: "intents are not asked for", script: []llmtest.Reply{answers(call(toolIntent, `{"intent":"CODE"}`), call(toolList, `{}`)), text("Fine.")},
			results: []string{"No intent is needed", "broken, greet, save"},
		},
	}
}

func kindsOf(entries []session.Entry) []session.Kind {
	var out []session.Kind
	for _, e := range entries {
		if e.Kind != session.Note {
			out = append(out, e.Kind)
		}
	}
	return out
}

// TestEngineConversations plays them with a model in memory.
func TestEngineConversations(t *testing.T) { tell(t, conversations(), inMemory) }

// wired opens a provider of a wire over a scripted server.
func wired(t testing.TB, w llmtest.Wire, s llmtest.Script) llm.Model {
	t.Helper()
	server := llmtest.Serve(t, w, s)
	cfg := provider.Config{BaseURL: server.URL(), Model: "scripted", MaxTokens: 1000, Key: func(context.Context) (string, error) { return "k", nil }, Retry: provider.Retry{Tries: 2, First: time.Millisecond, Most: 2 * time.Millisecond}}
	t.Cleanup(func() {
		for _, p := range server.Problems() {
			t.Errorf("the server refused: %s", p)
		}
	})
	switch w {
	case llmtest.Chat:
		return openai.NewChat(cfg)
	case llmtest.Responses:
		return openai.NewResponses(cfg)
	case llmtest.Messages:
		return anthropic.New(cfg)
	}
	return gemini.New(cfg)
}

// TestT18ProvidersRunTheSameSuite: swapping the provider changes nothing of
// what the engine does (S4.23, S4.51), and a 429 before the first chunk costs a
// retry of the provider's and nothing of the conversation.
func TestT18ProvidersRunTheSameSuite(t *testing.T) {
	testkit.CI(t, "plays every conversation over every wire")
	limited := story{
		name: "rate limit", script: []llmtest.Reply{{Fault: llmtest.Rate, RetryAfter: time.Millisecond}, text("Hello.")},
		check: func(t *testing.T, r *rig, _ string) {
			if d := done(t, r.events, event.EndAnswer); d.Text != "Hello." || d.Steps != 1 {
				t.Errorf("Done = %+v, want one step", d)
			}
		},
	}
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			tell(t, append(conversations(), limited), func(t *testing.T, s llmtest.Script) llm.Model { return wired(t, w, s) })
		})
	}
}

// TestS445SuccessRoundTrip: a message, a call, its output, an answer; what is told
// of them, and what is written down.
func TestS445SuccessRoundTrip(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(answers(greet("Ada")), text("She says hello Ada.")))
	d := done(t, r.say(id, "Greet Ada for me"), event.EndAnswer)
	if d.Text != "She says hello Ada." || d.Steps != 2 || d.Calls != 1 || d.Turn != 1 || d.Usage.Input != 20 {
		t.Errorf("Done = %+v", d)
	}
	started, finished := of[event.Started](r.events), of[event.Finished](r.events)
	if len(started) != 1 || started[0].Call.Target != "tool:greet" || string(started[0].Call.Arguments) != `{"name":"Ada"}` {
		t.Errorf("Started = %+v, want the real call and not its envelope", started)
	}
	if len(finished) != 1 || finished[0].Error != "" || finished[0].Result.Parts[0].Text != "hello Ada" {
		t.Errorf("Finished = %+v", finished)
	}
	if s := of[event.Selected](r.events); len(s) != 1 || s[0].Delivery == "" {
		t.Errorf("Selected = %+v, want one", s)
	}
	prefix := r.entries(id)[0]
	if prefix.Kind != session.Prefix || prefix.System == "" || len(prefix.Tools) < 5 || prefix.Tools[len(prefix.Tools)-1].Name != toolFinish {
		t.Errorf("the first entry is %+v, want the prefix, whose last tool without intents is %s", prefix, toolFinish)
	}
}

// TestEventsAsJSON: each event is an object with its type, and arguments are there
// as they are.
func TestEventsAsJSON(t *testing.T) {
	for want, e := range map[string]event.Event{
		`"type":"selected"`: event.Selected{}, `"type":"delta"`: event.Delta{}, `"type":"started"`: event.Started{}, `"type":"output"`: event.Output{},
		`"type":"asked"`: event.Asked{}, `"type":"answered"`: event.Answered{}, `"type":"finished"`: event.Finished{}, `"type":"intended"`: event.Intended{},
		`"type":"notice"`: event.Notice{}, `"type":"step"`: event.Step{}, `"type":"done"`: event.Done{},
		`"arguments":{"name":"Ada"}`: event.Started{Call: event.Call{Arguments: []byte(`{"name":"Ada"}`)}},
		`"arguments":"{oops"`:        event.Started{Call: event.Call{Arguments: []byte("{oops")}},
	} {
		if b, err := json.Marshal(e); err != nil || !json.Valid(b) || !strings.Contains(string(b), want) {
			t.Errorf("%T is %s, %v, want %s in it", e, b, err, want)
		}
	}
	if b, _ := json.Marshal(event.Call{Target: "x"}); strings.Contains(string(b), "arguments") {
		t.Errorf("no arguments are %s", b)
	}
}
