package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/know/source"
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

// wordsOf returns all that a request says besides its system prompt.
func wordsOf(t *testing.T, req llm.Request) string {
	t.Helper()
	b, err := json.Marshal(req.Messages)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
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

// TestS182EndToEnd: a conversation calls for a card, the card reaches the model
// beside the message, the model does what it says, all of it within the budget
// and on the record. Switched off, none of it happens (S1.35, S1.36, S1.39,
// S1.40).
func TestS182EndToEnd(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		dir, getenv := home(t, map[string]string{
			".ken/capabilities/cards/tides.md": tides,
			".ken/AGENTS.md":                   "We look after a harbour.\n",
			".ken/ken.yaml":                    "capabilities: {enabled: " + map[bool]string{true: "true", false: "false"}[enabled] + "}\n",
		})
		work := t.TempDir()
		write(t, filepath.Join(work, "tables", "tides.txt"), "High water at 06:12.\n")
		fake := &llmtest.Fake{Script: func(seen llmtest.Seen) llmtest.Reply {
			said := wordsOf(t, seen.Request)
			switch {
			case strings.Contains(said, "High water"):
				return llmtest.Reply{Text: "At 06:12."}
			case strings.Contains(said, "tables/tides.txt"): // the card says so, and nothing else
				return llmtest.Reply{Calls: []llm.ToolCall{intended("READ_FILE"), called("r", "read_file", `{"path":"tables/tides.txt"}`)}}
			}
			return llmtest.Reply{Text: "I do not know."}
		}}
		a := open(t, Config{Getenv: getenv, Dir: work, Model: fake})
		id := newSession(t, a)
		events := hear(t, a, event.Input{Session: id, Text: "when is the next high tide in the harbour?"})
		done, ok := events[len(events)-1].(event.Done)
		want := map[bool]string{true: "At 06:12.", false: "I do not know."}[enabled]
		if !ok || done.Reason != event.EndAnswer || done.Text != want {
			t.Fatalf("enabled %v: the turn ended with %+v, want %q", enabled, events[len(events)-1], want)
		}
		if system := fake.Requests()[0].Request.System; !strings.Contains(system, "We look after a harbour.") || strings.Contains(system, "tables/tides.txt") {
			t.Errorf("enabled %v: the system prompt is %s\nwant AGENTS.md, and no card: that is beside the message", enabled, system)
		}
		for _, ev := range events {
			s, ok := ev.(event.Selected)
			if !ok {
				continue
			}
			if got := len(s.Found.Cards); got != map[bool]int{true: 1}[enabled] {
				t.Errorf("enabled %v: %d cards were selected", enabled, got)
			}
			if tokens := s.Found.Tokens; tokens.Cards > a.Settings.Capabilities.MaxTokens || tokens.Total > s.Found.Budget || enabled && tokens.Cards == 0 {
				t.Errorf("enabled %v: tokens are %+v, the budget is %d", enabled, tokens, s.Found.Budget)
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(filepath.Join(dir, ".ken", "logs", "capabilities.log"))
		if err != nil && enabled {
			t.Fatal(err)
		}
		if injected := strings.Contains(string(log), "[capability-injection] Injected 1 capability ("); injected != enabled {
			t.Errorf("enabled %v: the log says %q", enabled, log)
		}
	}
}

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

// TestC33MemoryIsOff: what was said before is in the next conversation where
// somebody wants that, as data, and otherwise not (S4.52).
func TestC33MemoryIsOff(t *testing.T) {
	for settings, want := range map[string]bool{"": false, "chat: {memory: true}\n": true} {
		_, getenv := home(t, map[string]string{".ken/ken.yaml": settings})
		fake := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "It is the Gudrun."})}
		a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Model: fake})
		hear(t, a, event.Input{Session: newSession(t, a), Text: "what is my boat called?"})
		hear(t, a, event.Input{Session: newSession(t, a), Text: "hello"})
		seen := fake.Requests()
		system := seen[len(seen)-1].Request.System
		if got := strings.Contains(system, "# Previous conversation\n\n[[data ") && strings.Contains(system, "It is the Gudrun."); got != want {
			t.Errorf("%q: the conversation before is in the prompt: %v, want %v\n%s", settings, got, want, system)
		}
		if strings.Contains(wordsOf(t, seen[len(seen)-1].Request), "Gudrun") {
			t.Errorf("%q: the conversation before is among the messages", settings)
		}
	}
}

// TestS308Modes: the mode of a turn says which tools the model is given, and
// what it calls nevertheless is refused (S3.03).
func TestS308Modes(t *testing.T) {
	for mode, writes := range map[string]bool{"code": true, "quiet": false} {
		_, getenv := home(t, map[string]string{
			".ken/ken.yaml": "policy: {modes: {quiet: {groups: [read]}}, rules: [{id: may, effect: allow, capabilities: [tool:write_to_file]}]}\n",
		})
		tools := source.NewMemory("program", capability.TrustUser)
		for name, readOnly := range map[string]capability.Hint{"look": capability.Yes, "note": capability.No} {
			tools.Put(capability.Capability{
				Name: name, Description: "A tool to " + name, Run: &capability.Recipe{Runner: "function." + name},
				Effects: capability.Effects{ReadOnly: readOnly, OpenWorld: capability.No},
			}, capability.Detail{Schema: json.RawMessage(`{"type":"object"}`)})
		}
		work := t.TempDir()
		fake := &llmtest.Fake{Script: llmtest.Replies(
			llmtest.Reply{Calls: []llm.ToolCall{intended("WRITE_FILE"), called("w", "write_to_file", `{"path":"a.txt","content":"x"}`)}},
			llmtest.Reply{Text: "Done."},
		)}
		a := open(t, Config{Getenv: getenv, Dir: work, Model: fake, Sources: []capability.Source{tools}})
		hear(t, a, event.Input{Session: newSession(t, a), Text: "look and note it", Mode: mode})
		offered := func(name string) bool {
			return slices.ContainsFunc(fake.Requests()[0].Request.Tools, func(x llm.Tool) bool { return x.Name == name })
		}
		if !offered("look") || offered("note") != writes {
			t.Errorf("mode %s: look is offered: %v, note: %v, want %v", mode, offered("look"), offered("note"), writes)
		}
		if _, err := os.Stat(filepath.Join(work, "a.txt")); (err == nil) != writes {
			t.Errorf("mode %s: the file is there: %v, want %v", mode, err == nil, writes)
		}
	}
}

// TestS414SkillsOfTheUser: a skill of the user's that says so is in every prompt
// as a block of its own; skills.off takes it away. One that does not say so is
// not (S4.06, S4.13).
func TestS414SkillsOfTheUser(t *testing.T) {
	for settings, want := range map[string]bool{"": true, "skills: {off: [tone]}\n": false} {
		_, getenv := home(t, map[string]string{
			".ken/ken.yaml":             settings,
			".ken/skills/tone/SKILL.md": "---\nname: tone\ndescription: How to speak to people\nversion: \"2.1\"\nalways: true\n---\nBe brief and kind.\n",
			".ken/skills/row/SKILL.md":  "---\nname: row\ndescription: How to row a boat\n---\nPull together.\n",
		})
		fake := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "Hello."})}
		a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Model: fake})
		hear(t, a, event.Input{Session: newSession(t, a), Text: "hello"})
		system := fake.Requests()[0].Request.System
		if got := strings.Contains(system, "## Skill: tone\n\nBe brief and kind."); got != want {
			t.Errorf("%q: the skill is in the prompt: %v, want %v\n%s", settings, got, want, system)
		}
		if strings.Contains(system, "Pull together.") {
			t.Errorf("%q: a skill that is found when it fits is in the prompt", settings)
		}
		e, err := a.View().Lookup("skill:tone")
		if (err == nil) != want {
			t.Errorf("%q: Lookup = %v", settings, err)
		}
		if err == nil && (e.Version != "2.1" || e.Description != "How to speak to people") {
			t.Errorf("%q: the skill is %+v", settings, e.Capability)
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
		a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
		if got := condenseAt(*a.effective()); got != want {
			t.Errorf("%q: condenseAt() = %v, want %v", settings, got, want)
		}
	}
}
