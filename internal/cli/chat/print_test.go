package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/capability"
	"ken/internal/talk/event"
)

func sequence(list []event.Event, err error) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, ev := range list {
			if !yield(ev, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func turnOf(t *testing.T, name string) []event.Event {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/turns/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	return events(t, archive.Files[0].Data)
}

func TestPrint(t *testing.T) {
	turn := turnOf(t, "calls")
	raw := "I look at the log first.\n\n## What changed\n\n- **five** commits\n- one test fails\n\n```sh\ngit log -5\n```\n"
	tests := []struct {
		name   string
		o      Options
		events []event.Event
		out    string
		err    []string // parts of what is told beside
	}{
		{"brief", Options{}, []event.Event{turn[0], event.Done{Text: "An answer", Reason: event.EndAnswer}}, "An answer\n", nil},
		{"raw", Options{Verbose: true}, turn, raw, []string{"found 4 of 212: git-log", "✓ git-log", "✗ shell run", "retry: the model", "18k tokens in"}},
		{"quiet", Options{Quiet: true}, turn, raw, nil},
		{"rendered", Options{Width: 41, Quiet: true}, turn, "I look at the log first.\n## What changed\n\n• five commits\n• one test fails\n\n╭─ sh ──────────────────────────────────\ngit log -5\n╰───────────────────────────────────────\n", nil},
		{"whole", Options{}, []event.Event{event.Done{Text: "An *answer*", Reason: event.EndAnswer}}, "An *answer*\n", nil},
		{"rendered whole", Options{Width: 80}, []event.Event{event.Done{Text: "An *answer*\x1b[2J", Reason: event.EndAnswer}}, "An answer⟨U+001B⟩[2J\n", nil},
		{"command", Options{Quiet: true}, []event.Event{event.Started{}, event.Finished{Result: capability.Result{Parts: []capability.Part{{Text: "its output\n"}}}}, event.Done{Reason: event.EndCommand}}, "its output\n", nil},
		{"asked", Options{}, turnOf(t, "asked"), "", []string{"kubectl apply", "waiting: answer what is asked"}},
		{"nothing", Options{}, nil, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, side bytes.Buffer
			tt.o.Err, tt.o.Now = &side, clock()
			done, err := Print(&out, sequence(tt.events, nil), tt.o)
			if err != nil || out.String() != tt.out {
				t.Errorf("Print() = %v and\n%q, want\n%q", err, out.String(), tt.out)
			}
			if len(tt.events) > 0 && done.Reason == "" {
				t.Errorf("Print() = %+v, want how it ended", done)
			}
			for _, want := range tt.err {
				if !strings.Contains(side.String(), want) {
					t.Errorf("beside it tells\n%s\nwant %q", &side, want)
				}
			}
			if tt.err == nil && side.Len() > 0 {
				t.Errorf("beside it tells %q, want nothing", &side)
			}
			if strings.ContainsAny(side.String(), "\x1b\a") {
				t.Errorf("%q has control characters", &side)
			}
		})
	}
}

func TestPrintJSON(t *testing.T) {
	var out bytes.Buffer
	refused := &capability.Error{Kind: capability.Denied, Op: "talk", Target: "gpt-9", Err: errBroken}
	_, err := Print(&out, sequence(turnOf(t, "calls"), refused), Options{JSON: true})
	if !errors.Is(err, errBroken) {
		t.Errorf("Print() = %v, want the turn's error", err)
	}
	var types []string
	for line := range strings.Lines(out.String()) {
		var head struct {
			Type string `json:"type"`
			Kind string `json:"kind"`
			Call struct {
				Arguments map[string]any `json:"arguments"`
			} `json:"call"`
		}
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if head.Type == "started" && len(types) < 6 && head.Call.Arguments["path"] != "internal/cli" {
			t.Errorf("the arguments of %s are not JSON", line)
		}
		if head.Type == "error" && head.Kind != "denied" {
			t.Errorf("%s has kind %s, want denied", line, head.Kind)
		}
		types = append(types, head.Type)
	}
	want := "selected delta delta delta step started started output output finished finished started finished notice intended delta delta done error"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("types %s, want %s", got, want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errBroken }

func TestPrintBroken(t *testing.T) {
	for _, o := range []Options{{}, {JSON: true}, {Width: 80}} {
		n := 0
		_, err := Print(fullDisk{}, func(yield func(event.Event, error) bool) {
			for yield(event.Delta{Text: "a\n\n"}, nil) {
				n++
			}
		}, o)
		if !errors.Is(err, errBroken) || n > 1 {
			t.Errorf("Print(%+v) = %v after %d events, want the writer's error at once", o, err, n)
		}
	}
}

func TestForm(t *testing.T) {
	f := formOf(event.Asked{Requests: map[string]json.RawMessage{
		"a": json.RawMessage(`{"method":"elicitation/create","params":{"requestedSchema":{"required":["ok"],"properties":{"colour":{"type":"string","enum":["red","blue"]},"ok":{"type":"boolean"},"size":{"type":"number"}}}}}`),
		"b": json.RawMessage(`not JSON`),
	}})
	steps := []struct {
		text    string
		problem bool
	}{{"green", true}, {"blue", false}, {"", true}, {"maybe", true}, {"Yes", false}, {"NaN", false}}
	for _, s := range steps {
		if got := f.take(s.text); (got != "") != s.problem {
			t.Errorf("take(%q) = %q", s.text, got)
		}
	}
	if !f.over() || f.prompt() != "" {
		t.Errorf("it asks %q more", f.prompt())
	}
	// A number that JSON does not have is no answer.
	if a := f.answer(true); string(a.Answers["a"]) != `{"action":"decline"}` || string(a.Answers["b"]) != `{"action":"accept","content":{}}` {
		t.Errorf("answers %s", a.Answers)
	}
	f.at--
	f.take("2.5")
	if a := f.answer(true); string(a.Answers["a"]) != `{"action":"accept","content":{"colour":"blue","ok":true,"size":2.5}}` {
		t.Errorf("answers %s", a.Answers)
	}
}

// TestPrintTogether: where both outputs are one, each line stands alone.
func TestPrintTogether(t *testing.T) {
	var out bytes.Buffer
	list := []event.Event{
		event.Delta{Text: "I look."}, event.Notice{Name: "retry", Text: "once more"}, event.Delta{Text: "It is so."},
		event.Done{Reason: event.EndAnswer, Turn: 2, Steps: 1},
	}
	if _, err := Print(&out, sequence(list, nil), Options{Err: &out, Now: clock(), Verbose: true}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "I look.\nretry: once more\n\nIt is so.\nturn 2 · 0 tokens in, 0 out, 250 ms\n"; got != want {
		t.Errorf("both outputs are %q, want %q", got, want)
	}
}

// TestPrintCommand: a command's result is written by whoever knows how, and a
// refusal gives none.
func TestPrintCommand(t *testing.T) {
	for _, refused := range []string{"", "denied: no"} {
		var out, side bytes.Buffer
		var given []capability.Result
		list := []event.Event{
			event.Finished{ID: "1", Error: refused, Result: capability.Result{Parts: []capability.Part{{Text: "text"}}}},
			event.Done{Reason: event.EndCommand, Text: "text for the model"},
		}
		o := Options{Err: &side, Now: clock(), Result: func(r capability.Result) { given = append(given, r) }}
		if _, err := Print(&out, sequence(list, nil), o); err != nil || out.Len() > 0 {
			t.Errorf("Print() = %v and %q, want nothing of its own", err, &out)
		}
		if len(given) != 1 || len(given[0].Parts) == 1 != (refused == "") || strings.Count(side.String(), "denied: no") != strings.Count(refused, "denied") {
			t.Errorf("with the refusal %q it gives %v and tells %q", refused, given, &side)
		}
	}
}
