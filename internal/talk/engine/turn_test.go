package engine

import (
	"strings"
	"testing"

	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm/llmtest"
)

// TestS445SuccessRoundTrip: a message, a call, its output, an answer.
func TestS445SuccessRoundTrip(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(answers(invoke("tool:greet", `{"name":"Ada"}`)), text("She says hello Ada.")))
	events := r.say(id, "Greet Ada for me")
	d := done(t, events, event.EndAnswer)
	if d.Text != "She says hello Ada." || d.Steps != 2 || d.Calls != 1 || d.Turn != 1 || d.Usage.Input != 20 {
		t.Errorf("Done = %+v", d)
	}
	if got := r.made(); len(got) != 1 || got[0] != "tool:greet" {
		t.Errorf("calls = %v, want one of tool:greet", got)
	}
	started, finished := of[event.Started](events), of[event.Finished](events)
	if len(started) != 1 || started[0].Call.Target != "tool:greet" || string(started[0].Call.Arguments) != `{"name":"Ada"}` {
		t.Errorf("Started = %+v, want the real call and not its envelope", started)
	}
	if len(finished) != 1 || finished[0].Error != "" || finished[0].Result.Parts[0].Text != "hello Ada" {
		t.Errorf("Finished = %+v", finished)
	}
	if s := of[event.Selected](events); len(s) != 1 || s[0].Delivery == "" {
		t.Errorf("Selected = %+v, want one", s)
	}
	entries := r.entries(id)
	contains(t, "the result", strings.Join(resultTexts(entries), "|"), "hello Ada")
	if entries[0].Kind != session.Prefix || entries[0].System == "" || len(entries[0].Tools) < 5 {
		t.Errorf("the first entry is %+v, want the prefix", entries[0])
	}
	tools := entries[0].Tools
	if tools[len(tools)-1].Name != toolFinish {
		t.Errorf("the last tool is %s; without intents it is %s", tools[len(tools)-1].Name, toolFinish)
	}
}

// TestS446FailureRoundTrip: a failed call is a result, and the turn goes on.
func TestS446FailureRoundTrip(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(answers(invoke("tool:broken", `{}`)), text("It does not work.")))
	events := r.say(id, "try it")
	done(t, events, event.EndAnswer)
	f := of[event.Finished](events)
	if len(f) != 1 || !f[0].Result.Failed || f[0].Error != "" {
		t.Errorf("Finished = %+v, want a failure of the tool's own", f)
	}
	contains(t, "the result", resultTexts(r.entries(id))[0], "disk on fire")
}

// TestS447UnknownTool: a tool that is not there is a result that names what is
// near and how to look for more; nothing runs, and the turn goes on.
func TestS447UnknownTool(t *testing.T) {
	r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Delivery: model.Bridge}.Always }})
	id := r.begin(llmtest.Replies(answers(call("great", `{"name":"Ada"}`)), answers(invoke("tool:greet", `{"name":"Ada"}`)), text("Done.")))
	events := r.say(id, "Greet Ada for me")
	done(t, events, event.EndAnswer)
	f := of[event.Finished](events)
	if len(f) != 2 || f[0].Kind != "not found" || !f[0].Result.Failed || f[1].Error != "" {
		t.Errorf("Finished = %+v", f)
	}
	got := resultTexts(r.entries(id))
	contains(t, "the result", got[0], "There is no tool great", "tool:greet", toolDiscover)
	contains(t, "the next", got[1], "hello Ada")
	if made := r.made(); len(made) != 1 {
		t.Errorf("calls = %v, want one", made)
	}
}
