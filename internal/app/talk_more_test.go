package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// saidTo returns all that a model was told in a request beside the system prompt.
func saidTo(req llm.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		for _, block := range m.Blocks {
			b.WriteString(block.Text + "\n")
		}
	}
	return b.String()
}

// TestS315Environment: the model is told the day, the folder and the mode, once.
func TestS315Environment(t *testing.T) {
	work := t.TempDir()
	fake := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "Hello."})}
	a := open(t, Config{Dir: work, Model: fake})
	say(t, a, "hello")
	if said := saidTo(fake.Requests()[0].Request); strings.Count(said, "The workspace is "+work) != 1 || !strings.Contains(said, "[Today is ") {
		t.Errorf("the model was told %q, want where it is", said)
	}
}

// TestS2U10ToolFailureMode: the key decides what becomes of a turn when finding
// breaks.
func TestS2U10ToolFailureMode(t *testing.T) {
	for mode, want := range map[string]bool{"fail_open": false, "fail_closed": true} {
		_, getenv := home(t, map[string]string{".ken/ken.yaml": "chat: {toolFailureMode: " + mode + "}\n"})
		a := open(t, Config{Getenv: getenv})
		if got := termsOf(a.effective()).Closed; got != want {
			t.Errorf("with %s a turn ends: %v, want %v", mode, got, want)
		}
	}
}

// TestS342TurnAndCallAreOneTrace: a collector gets the span of the turn and,
// below it, that of its call.
func TestS342TurnAndCallAreOneTrace(t *testing.T) {
	var got []byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = io.ReadAll(r.Body) }))
	defer srv.Close()
	_, getenv := home(t, map[string]string{".ken/ken.yaml": "trace: {otlp: '" + srv.URL + "'}\n"})
	fake := &llmtest.Fake{Script: llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{intended("READ_FILE"), called("l", "list_files", `{}`)}}, llmtest.Reply{Text: "Done."},
	)}
	a, err := Open(t.Context(), Config{Getenv: getenv, Dir: t.TempDir(), Model: fake})
	if err != nil {
		t.Fatal(err)
	}
	say(t, a, "list the files")
	if err := a.Close(); err != nil { // it sends what waits
		t.Fatal(err)
	}
	type span struct{ TraceID, SpanID, ParentSpanID, Name string }
	var doc struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
	}
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	by := map[string]span{}
	for _, s := range doc.ResourceSpans[0].ScopeSpans[0].Spans {
		by[s.Name] = s
	}
	turn, call := by["invoke_agent ken"], by["execute_tool tool:list_files"]
	if turn.SpanID == "" || turn.ParentSpanID != "" || call.ParentSpanID != turn.SpanID || call.TraceID != turn.TraceID {
		t.Errorf("spans = %+v, want the call below the turn", by)
	}
}

// TestMemoryKeepsAgentsApart: with chat.memory the conversation before is shown, as
// data, and what a person said is not shown in what an agent began, nor the other
// way round, though it was said later. Without it nothing of before is shown.
func TestMemoryKeepsAgentsApart(t *testing.T) {
	for _, memory := range []bool{true, false} {
		_, getenv := home(t, map[string]string{".ken/ken.yaml": fmt.Sprintf("chat: {memory: %v}\n", memory)})
		fake := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "Hello."})}
		a := open(t, Config{Getenv: getenv, Model: fake})
		for i, c := range []struct{ by, text, shown string }{
			{"", "my cat is called Mia", ""},
			{"tidy", "tidy the notes", ""},
			{"", "hello", "my cat is called Mia"},
			{"other", "hello again", "tidy the notes"},
		} {
			sayAs(t, a, session.Head{Tenant: a.Principal.Tenant, Principal: a.Principal.ID, BegunBy: c.by}, c.text)
			system := fake.Requests()[i].Request.System
			_, before, _ := strings.Cut(system, "# Previous conversation\n\n[[data ")
			for _, text := range []string{"my cat is called Mia", "tidy the notes"} {
				if got := strings.Contains(before, text); got != (memory && text == c.shown) || got != strings.Contains(system, text) {
					t.Errorf("memory %v: in what %q began, %q of before is shown: %v", memory, c.by, text, got)
				}
			}
		}
	}
}
