package toolcall

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/talk/session"
	"ken/llm"
)

// TestRead: a call directly and one in the envelope of invoke_capability mean the
// same, under an id or the name that the model was shown.
func TestRead(t *testing.T) {
	resolve := func(name string) (session.Offer, bool) {
		o, ok := map[string]session.Offer{"greet": {ID: "tool:greet"}, "git_push": {ID: "tool:git", Action: "push"}}[name]
		return o, ok
	}
	for _, c := range []struct {
		name, args string
		want       string // own, target, action, arguments; empty: an error
	}{
		{"greet", `{"a":1}`, `||tool:greet||{"a":1}`},
		{"greet", ``, `||tool:greet||{}`},
		{"git_push", `{}`, `||tool:git|push|{}`},
		{"nobody", `{}`, `||nobody||{}`},
		{"invoke_capability", `{"capability":"greet","arguments":{"a":1}}`, `||tool:greet||{"a":1}`},
		{"invoke_capability", `{"capability":"tool:x","action":"go"}`, `||tool:x|go|{}`},
		{"invoke_capability", `{"capability":"git_push","action":"other"}`, `||tool:git|push|{}`},
		{"invoke_capability", `{"capability":"tool:finish","arguments":{"answer":"x"}}`, `|finish|||{"answer":"x"}`},
		{"finish", `{"answer":"x"}`, `|finish|||{"answer":"x"}`},
		{"read_result", `{"handle":"h"}`, `||read_result||{"handle":"h"}`},
		{"invoke_capability", `{"capability":"invoke_capability"}`, ``},
		{"invoke_capability", `{"capability":"greet","arguments":7}`, ``},
		{"greet", `please`, ``},
	} {
		got, err := Read(&llm.ToolCall{Name: c.name, Arguments: []byte(c.args)}, true, resolve)
		if c.want == "" {
			if capability.KindOf(err) != capability.Invalid {
				t.Errorf("Read(%s %s) = %+v, %v; want an error of the kind invalid", c.name, c.args, got, err)
			}
			continue
		}
		if text := "|" + got.Own + "|" + string(got.Target) + "|" + got.Action + "|" + string(got.Arguments); err != nil || text != c.want {
			t.Errorf("Read(%s %s) = %s, %v; want %s", c.name, c.args, text, err, c.want)
		}
	}
}

// TestReadNotes: each repair is noted, also that of an envelope that cannot be
// read.
func TestReadNotes(t *testing.T) {
	none := func(string) (session.Offer, bool) { return session.Offer{}, false }
	got, err := Read(&llm.ToolCall{Name: "invoke_capability", Arguments: []byte(`{'capability':'tool:x','arguments':'{\"a\":1,}'}`)}, true, none)
	if err != nil || string(got.Arguments) != `{"a":1}` || got.Repaired == "" || got.Note == "" || got.Note == got.Repaired {
		t.Errorf("Read = %+v, %v; want a note for each of two repairs", got, err)
	}
	if got, err := Read(&llm.ToolCall{Name: "invoke_capability", Arguments: []byte(`{'other':1}`)}, true, none); err == nil || got.Repaired == "" {
		t.Errorf("Read = %+v, %v; want an error, and the note", got, err)
	}
}

// TestName: every call gets an id of its own, and a tool that was not declared is
// called through invoke_capability.
func TestName(t *testing.T) {
	calls := []*llm.ToolCall{
		{ID: "a", Name: "greet"}, {ID: "a", Name: "greet"}, {ID: "not plain", Name: "hidden", Arguments: []byte(`{"x":1}`)}, {ID: "call_2_5", Name: "finish"},
	}
	Name(calls, Answer{Turn: 2, Before: 3, Whole: true, Declared: map[string]bool{"greet": true, "invoke_capability": true}})
	want := []string{"a greet ", "call_2_5x greet ", `call_2_6 invoke_capability {"capability":"hidden","arguments":{"x":1}}`, "call_2_5 finish "}
	for i, c := range calls {
		if got := c.ID + " " + c.Name + " " + string(c.Arguments); got != want[i] {
			t.Errorf("call %d is %q, want %q", i, got, want[i])
		}
	}
	again := []*llm.ToolCall{{ID: "a", Name: "greet"}, {ID: "b", Name: "greet"}, {ID: "c", Name: strings.Repeat("x", 100_000)}}
	Name(again, Answer{Turn: 3, Whole: true, Declared: map[string]bool{"greet": true}, Used: map[string]bool{"a": true, "call_3_1": true}})
	if again[0].ID != "call_3_1x" || again[1].ID != "b" || len(again[2].Arguments) > 600 {
		t.Errorf("the calls are %s, %s and one of %d bytes, want call_3_1x, b and a name that is cut", again[0].ID, again[1].ID, len(again[2].Arguments))
	}
	all := []*llm.ToolCall{{ID: "a", Name: "plain"}}
	Name(all, Answer{Turn: 1, Whole: true, Declared: map[string]bool{"greet": true}})
	if all[0].Name != "plain" {
		t.Errorf("where everything is declared the call is of %s, want its own name", all[0].Name)
	}
}
