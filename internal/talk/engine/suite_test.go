package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/provider"
	"ken/internal/talk/provider/anthropic"
	"ken/internal/talk/provider/gemini"
	"ken/internal/talk/provider/openai"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// A conversation is a script and its expected outcome, for every provider.
type conversation struct {
	name    string
	setting setting
	script  []llmtest.Reply
	input   event.Input
	end     event.End
	made    []string // targets that reached a tool, in order
	results []string // parts of the results, in order
	notice  string   // name of one that must be there
	check   func(t *testing.T, r *rig, id string, events []event.Event)
}

// conversations are what every provider must carry.
func conversations() []conversation {
	hi := event.Input{Text: "hello there"}
	return []conversation{
		{name: "answer", script: []llmtest.Reply{text("Hello.")}, input: hi, end: event.EndAnswer},
		{
			name: "success", script: []llmtest.Reply{answers(invoke("tool:greet", `{"name":"Ada"}`)), text("Done.")}, input: hi, end: event.EndAnswer,
			made: []string{"tool:greet"}, results: []string{"hello Ada"},
		},
		{
			name: "thoughts", script: []llmtest.Reply{{Thought: "let me see", Text: "One moment.", Calls: []llm.ToolCall{invoke("tool:greet", `{"name":"Ada"}`)}}, text("Done.")},
			input: hi, end: event.EndAnswer, made: []string{"tool:greet"}, results: []string{"hello Ada"},
		},
		{
			name: "tool failure", script: []llmtest.Reply{answers(invoke("tool:broken", `{}`)), text("It broke.")}, input: hi, end: event.EndAnswer,
			made: []string{"tool:broken"}, results: []string{"disk on fire"},
		},
		{
			name: "unknown tool", script: []llmtest.Reply{answers(call("gret", `{"name":"Ada"}`)), text("Sorry.")}, input: hi, end: event.EndAnswer,
			results: []string{"There is no tool gret. Near it: tool:greet"},
		},
		{
			name: "unknown tool in the envelope", script: []llmtest.Reply{answers(invoke("tool:gret", `{}`)), text("Sorry.")}, input: hi, end: event.EndAnswer,
			results: []string{"There is no tool tool:gret. Near it: tool:greet."},
		},
		{
			name: "refused tool", script: []llmtest.Reply{answers(invoke("tool:secret", `{}`)), text("I may not.")}, input: hi, end: event.EndAnswer,
			results: []string{"There is no tool tool:secret"}, // a hidden tool is reported like one that does not exist
		},
		{
			name: "schema", script: []llmtest.Reply{answers(invoke("tool:greet", `{"nom":"Ada"}`)), text("Sorry.")}, input: hi, end: event.EndAnswer,
			results: []string{"Its input schema"},
		},
		{
			name: "parallel calls", script: []llmtest.Reply{
				answers(invoke("tool:greet", `{"name":"A"}`), invoke("tool:greet", `{"name":"B"}`), call(toolDiscover, `{"query":"save a note"}`), invoke("tool:save", `{"name":"C"}`), invoke("tool:greet", `{"name":"D"}`)),
				text("Done."),
			}, input: hi, end: event.EndAnswer, results: []string{"hello A", "hello B", "save", "saved", "hello D"},
		},
		{
			name: "repaired", script: []llmtest.Reply{answers(call("greet", "```json\n{'name': 'Ada',}\n```")), text("Done.")}, input: hi, end: event.EndAnswer,
			made: []string{"tool:greet"}, results: []string{"hello Ada"}, notice: "repair",
		},
		{
			name: "beyond repair", script: []llmtest.Reply{answers(call("greet", `{"name": "Ad`)), text("Sorry.")}, input: hi, end: event.EndAnswer,
			results: []string{"not one JSON object"},
		},
		{
			name: "cut", script: []llmtest.Reply{{Text: "I would like to tell you that this", Fault: llmtest.Cut, Fragments: 6}, text("and that.")}, input: hi, end: event.EndAnswer, notice: "retry",
			check: func(t *testing.T, r *rig, id string, _ []event.Event) {
				kinds := kindsOf(r.entries(id))
				want := []session.Kind{session.Prefix, session.User, session.Assistant, session.Added, session.Assistant}
				if !slices.Equal(kinds, want) {
					t.Errorf("entries = %v, want %v", kinds, want)
				}
			},
		},
		{
			name: "cut twice", script: []llmtest.Reply{{Text: "I would like to", Fault: llmtest.Cut}, {Text: "I would like to", Fault: llmtest.Cut}}, input: hi, end: event.EndFailed, notice: "retry",
		},
		{
			name: "500", script: []llmtest.Reply{{Fault: llmtest.ServerError}, {Fault: llmtest.ServerError}, {Fault: llmtest.ServerError}, {Fault: llmtest.ServerError}}, input: hi, end: event.EndFailed,
		},
		{name: "auth", script: []llmtest.Reply{{Fault: llmtest.Auth}}, input: hi, end: event.EndFailed},
		{
			name: "overflow", script: []llmtest.Reply{{Fault: llmtest.TooLong}, {Fault: llmtest.TooLong}, {Fault: llmtest.TooLong}, {Fault: llmtest.TooLong}}, input: hi, end: event.EndFailed,
		},
		{
			name: "finish", script: []llmtest.Reply{answers(call(toolFinish, `{"answer":"That is all."}`), invoke("tool:save", `{"name":"x"}`))}, input: hi, end: event.EndAnswer,
			results: []string{"The turn is over", "finish came before it"},
			check: func(t *testing.T, _ *rig, _ string, events []event.Event) {
				if d := done(t, events, event.EndAnswer); d.Text != "That is all." {
					t.Errorf("the answer is %q", d.Text)
				}
			},
		},
		{
			name: "nothing", script: []llmtest.Reply{{Stop: llm.StopEnd}, text("Oh, hello.")}, input: hi, end: event.EndAnswer,
		},
		{
			name: "a tool that is no tool's name", script: []llmtest.Reply{answers(call("functions.greet:0", `{"name":"A"}`)), text("Sorry.")}, input: hi, end: event.EndAnswer,
			results: []string{"There is no tool functions.greet:0"},
		},
		{
			name: "intents are not asked for", script: []llmtest.Reply{answers(call(toolIntent, `{"intent":"CODE"}`), call(toolList, `{}`)), text("Fine.")}, input: hi, end: event.EndAnswer,
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

// converse plays a conversation and then says one thing more, to see that the
// session takes it.
func converse(t *testing.T, c conversation, open_ func(t *testing.T, s llmtest.Script) llm.Model) {
	r := open(t, c.setting)
	more, script := false, llmtest.Replies(c.script...)
	r.model = open_(t, func(s llmtest.Seen) llmtest.Reply {
		if more {
			return text("And now?")
		}
		return script(s)
	})
	id := r.session()
	c.input.Session = id
	events := r.turn(c.input)
	d := done(t, events, c.end)
	if c.end == event.EndFailed && d.Why == "" {
		t.Error("it does not say why it failed")
	}
	if c.made != nil || c.results == nil {
		if got := r.made(); !slices.Equal(got, c.made) {
			t.Errorf("calls = %v, want %v", got, c.made)
		}
	}
	got := resultTexts(r.entries(id))
	if len(got) != len(c.results) {
		t.Fatalf("results = %q, want %d", got, len(c.results))
	}
	for i, want := range c.results {
		contains(t, "a result", got[i], want)
	}
	if c.notice != "" && !slices.ContainsFunc(of[event.Notice](events), func(n event.Notice) bool { return n.Name == c.notice }) {
		t.Errorf("no notice %s among %v", c.notice, of[event.Notice](events))
	}
	if c.check != nil {
		c.check(t, r, id, events)
	}
	more = true
	done(t, r.say(id, "And then?"), event.EndAnswer)
	r.entries(id)
}

// TestEngineConversations plays them with a model in memory.
func TestEngineConversations(t *testing.T) {
	for _, c := range conversations() {
		t.Run(c.name, func(t *testing.T) {
			converse(t, c, func(_ *testing.T, s llmtest.Script) llm.Model { return &llmtest.Fake{Script: s} })
		})
	}
}

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
// what the engine does (S4.23, S4.51).
func TestT18ProvidersRunTheSameSuite(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			for _, c := range conversations() {
				t.Run(c.name, func(t *testing.T) {
					converse(t, c, func(t *testing.T, s llmtest.Script) llm.Model { return wired(t, w, s) })
				})
			}
		})
	}
}

// TestRateLimitIsWaitedFor: a 429 before the first chunk costs a retry of the
// provider's and nothing of the conversation.
func TestRateLimitIsWaitedFor(t *testing.T) {
	for _, w := range llmtest.Wires() {
		t.Run(string(w), func(t *testing.T) {
			r := open(t, setting{})
			r.model = wired(t, w, llmtest.Replies(llmtest.Reply{Fault: llmtest.Rate, RetryAfter: time.Millisecond}, text("Hello.")))
			id := r.session()
			if d := done(t, r.say(id, "hello"), event.EndAnswer); d.Text != "Hello." || d.Steps != 1 {
				t.Errorf("Done = %+v, want one step", d)
			}
		})
	}
}

// TestEventsAsJSON: each event is an object with its type.
func TestEventsAsJSON(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(llmtest.Reply{Thought: "hm", Calls: []llm.ToolCall{invoke("tool:greet", `{"name":"Ada"}`)}}, text("Done.")))
	seen := map[string]bool{}
	for _, e := range append(r.say(id, "hello"), event.Output{}, event.Asked{}, event.Answered{}, event.Intended{}, event.Notice{}) {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		seen[doc["type"].(string)] = true
		if c, ok := doc["call"].(map[string]any); ok && c["target"] == "tool:greet" && c["arguments"].(map[string]any)["name"] != "Ada" {
			t.Errorf("the arguments are not there as they are: %s", b)
		}
	}
	for _, want := range []string{"selected", "delta", "started", "output", "asked", "answered", "finished", "intended", "notice", "step", "done"} {
		if !seen[want] {
			t.Errorf("no event of the type %s", want)
		}
	}
	if b, _ := json.Marshal(event.Call{Arguments: []byte("{oops")}); !strings.Contains(string(b), `"arguments":"{oops"`) {
		t.Errorf("arguments that are no JSON are %s", b)
	}
	if b, _ := json.Marshal(event.Call{Target: capability.ID("x")}); strings.Contains(string(b), "arguments") {
		t.Errorf("no arguments are %s", b)
	}
}
