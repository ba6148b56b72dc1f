package chatapi

import (
	"strings"
	"testing"

	"ken/internal/talk/slash"
	"ken/llm"
	"ken/llm/llmtest"
)

const agent = ada + "'s agent"

// TestAgent: an agent talks, and what it says is never a person's own call: not
// by a slash, not by saying a person's line again, nor by going on with one. It
// answers nothing and takes no session away.
func TestAgent(t *testing.T) {
	r := open(t)
	id := r.begin()
	refused := func(method, path, body, says string) {
		t.Helper()
		a := r.ask(agent, method, path, body)
		if a.status != 403 || a.code() != "person-decides" || !strings.Contains(string(a.body), says) {
			t.Errorf("%s %s %s = %d %s, want 403 person-decides with %q", method, path, body, a.status, a.body, says)
		}
	}
	refused("POST", at(id, "/turns?wait=true"), `{"text":"/greet"}`, "POST /api/v1/invoke")
	if made := r.calls(); made != "" {
		t.Fatalf("a line of an agent made the calls %s", made)
	}
	for _, said := range []string{"hello", " /greet you", "//greet you", "/etc/passwd is a file"} {
		r.script(llmtest.Reply{Text: "Yes."})
		if a := r.ask(agent, "POST", at(id, "/turns?wait=true"), `{"text":"`+said+`"}`); a.status != 200 || !strings.Contains(string(a.body), `"Yes."`) {
			t.Errorf("%q of an agent = %d %s, want the model's answer", said, a.status, a.body)
		}
	}

	// What a person typed is theirs to say again, and to go on with.
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"text":"/greet"}`)
	refused("POST", at(id, "/retry"), `{}`, "begins with a slash")
	made := r.calls()
	type waiting struct {
		Done  struct{ Reason string }
		Asked []struct{ ID string }
	}
	two := do[waiting](r, "POST", at(id, "/turns?wait=true"), `{"text":"/save"}`)
	if two.Done.Reason != "waiting" || len(two.Asked) != 1 {
		t.Fatalf("/save = %+v, want it to wait", two)
	}
	refused("POST", at(id, "/turns?wait=true"), `{"continue":true}`, "own call")
	refused("POST", at(id, "/answers/"+two.Asked[0].ID), `{"yes":true}`, "ken approve")
	refused("DELETE", at(id, ""), "", "open the page")
	refused("POST", at(id, "/rewind"), `{"turn":1}`, "open the page")
	refused("POST", at(id, "/turns?wait=true"), `{"text":"hello"}`, "begin another session") // it would end what waits
	if now := r.calls(); now != made {
		t.Errorf("the calls are %s, want %s", now, made)
	}
	do[map[string]any](r, "POST", at(id, "/answers/"+two.Asked[0].ID), `{"yes":true}`)
	do[map[string]any](r, "POST", at(id, "/turns?wait=true"), `{"continue":true}`)

	// Its own turn waits for its person, and goes on when they have said yes.
	r.script(llmtest.Reply{Calls: []llm.ToolCall{invoke("tool:save", `{"again":1}`)}}, llmtest.Reply{Text: "Saved."})
	a := r.ask(agent, "POST", at(id, "/turns?wait=true"), `{"text":"save it"}`)
	if !strings.Contains(string(a.body), `"waiting"`) {
		t.Fatalf("a turn that needs consent = %d %s, want it to wait", a.status, a.body)
	}
	s := do[waiting](r, "GET", at(id, ""), "")
	do[map[string]any](r, "POST", at(id, "/answers/"+s.Asked[0].ID), `{"yes":true}`)
	if a := r.ask(agent, "POST", at(id, "/turns?wait=true"), `{"continue":true}`); a.status != 200 || !strings.Contains(string(a.body), `"Saved."`) {
		t.Errorf("going on = %d %s, want the answer", a.status, a.body)
	}
}

// TestAgentCompletes: an agent is shown the commands that it sees.
func TestAgentCompletes(t *testing.T) {
	r := open(t)
	for who, want := range map[string]bool{ada: true, agent: false} {
		a := r.ask(who, "GET", "/api/v1/complete?line=/", "")
		if a.status != 200 || strings.Contains(string(a.body), "hidden") != want || !strings.Contains(string(a.body), "greet") {
			t.Errorf("complete for %s = %d %s, want a hidden command: %v", who, a.status, a.body, want)
		}
	}
}

// FuzzWordsOfAgents: nothing that an agent says reaches the engine as a line that
// begins with a slash, whatever commands there are by then.
func FuzzWordsOfAgents(f *testing.F) {
	index := slash.New([]slash.Command{{Name: "greet"}, {Name: "save"}})
	for _, s := range []string{"/greet", " /greet", "//greet", "/etc/passwd", "/", "\u00a0/greet", "\t\n/save now", "/GREET", "hello /greet"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		text, err := words(index, typed, false)
		if err == nil && strings.HasPrefix(text, "/") {
			t.Errorf("words(%q) = %q for an agent", typed, text)
		}
		if index.Is(text) {
			t.Errorf("words(%q) = %q for an agent, which is a command", typed, text)
		}
		if same, serr := words(index, typed, true); err == nil && (serr != nil || strings.TrimSpace(same) != strings.TrimSpace(text)) {
			t.Errorf("words(%q) = %q for an agent, and %q, %v for a person", typed, text, same, serr)
		}
	})
}
