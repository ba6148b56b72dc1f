package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// newSession begins a conversation.
func newSession(t *testing.T, a *App) string {
	t.Helper()
	sessions, err := a.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	head, err := sessions.Begin(t.Context(), session.Head{Principal: a.Principal.ID, Folder: a.Places.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	return head.ID
}

// hear makes one turn of a conversation.
func hear(t *testing.T, a *App, in event.Input) []event.Event {
	t.Helper()
	e, err := a.Engine()
	if err != nil {
		t.Fatal(err)
	}
	in.Principal, in.Surface, in.Alone = a.Principal, "chat", true
	var out []event.Event
	for ev, err := range e.Turn(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ev)
	}
	return out
}

const tides = `---
capability_id: tides
name: Tides
description: Where the tide tables of this harbour are
triggers:
  keywords: [tide, tides, harbour]
  confidence_threshold: 0.2
priority: 10
token_budget: 300
---

The tide tables of this harbour are in tables/tides.txt; read that file before you say when it is safe to leave.
`

// TestS137LastFiveMessages: cards are judged by the message and the four before
// it, and what is not said otherwise is of the session type main (S1.38).
func TestS137LastFiveMessages(t *testing.T) {
	_, getenv := home(t, map[string]string{".ken/capabilities/cards/tides.md": tides})
	var last door.CardContext
	a := open(t, Config{
		Getenv: getenv, Dir: t.TempDir(), Model: &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "Well."})},
		CardScorer: func(_ *capability.Capability, x door.CardContext) float64 { last = x; return 0 },
	})
	id := newSession(t, a)
	for _, text := range []string{"one", "two", "three", "four"} {
		hear(t, a, event.Input{Session: id, Text: text})
	}
	var got []string
	for _, m := range last.Messages {
		got = append(got, m.Role+" "+m.Text)
	}
	if want := []string{"user two", "assistant Well.", "user three", "assistant Well.", "user four"}; !slices.Equal(got, want) {
		t.Errorf("the messages are %q, want %q", got, want)
	}
	if last.Scope.Session != id || last.Scope.SessionType != "" {
		t.Errorf("the scope is %+v, want the session, of no type, which counts as main", last.Scope)
	}
}

// TestS308Modes: the mode of a turn says which tools the model is given, and
// what it calls nevertheless is refused (S3.03).
func TestS308Modes(t *testing.T) {
	for mode, writes := range map[string]bool{"code": true, "quiet": false} {
		_, getenv := home(t, map[string]string{
			".ken/ken.yaml": "policy: {modes: {quiet: {groups: [read]}}, rules: [{id: may, effect: allow, capabilities: [tool:write_to_file]}]}\n",
		})
		work := t.TempDir()
		fake := &llmtest.Fake{Script: llmtest.Replies(
			llmtest.Reply{Calls: []llm.ToolCall{intended("WRITE_FILE"), called("w", "write_to_file", `{"path":"a.txt","content":"x"}`)}},
			llmtest.Reply{Text: "Done."},
		)}
		a := open(t, Config{Getenv: getenv, Dir: work, Model: fake})
		hear(t, a, event.Input{Session: newSession(t, a), Text: "write it to a file", Mode: mode})
		offered := func(name string) bool {
			return slices.ContainsFunc(fake.Requests()[0].Request.Tools, func(x llm.Tool) bool { return x.Name == name })
		}
		if !offered("read_file") || offered("write_to_file") != writes {
			t.Errorf("mode %s: read_file is offered: %v, write_to_file: %v, want %v", mode, offered("read_file"), offered("write_to_file"), writes)
		}
		if _, err := os.Stat(filepath.Join(work, "a.txt")); (err == nil) != writes {
			t.Errorf("mode %s: the file is there: %v, want %v", mode, err == nil, writes)
		}
	}
}

// TestS3U01ByProvider: when to condense is said for all, and by a provider
// otherwise; -1 inherits.
func TestS3U01ByProvider(t *testing.T) {
	for settings, want := range map[string]float64{
		"":                         1,
		"chat: {condenseAt: 60}\n": 0.6,
		"chat: {condenseAt: 60}\nproviders: {lab: {wire: openai-chat, url: 'http://127.0.0.1:9', condenseAt: 80}}\n": 0.8,
		"chat: {condenseAt: 60}\nproviders: {lab: {wire: openai-chat, url: 'http://127.0.0.1:9', condenseAt: -1}}\n": 0.6,
	} {
		model := ""
		if strings.Contains(settings, "lab") {
			model = "model: lab/x\n"
		}
		_, getenv := home(t, map[string]string{".ken/ken.yaml": model + settings})
		a := open(t, Config{Getenv: getenv})
		if got := condenseAt(*a.effective()); got != want {
			t.Errorf("%q: condenseAt() = %v, want %v", settings, got, want)
		}
	}
}
