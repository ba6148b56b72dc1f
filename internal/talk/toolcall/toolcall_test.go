package toolcall

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/talk/session"
	"ken/llm"
	"pgregory.net/rapid"
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

// TestS4U10Repair: what models write for JSON is repaired once, the same way
// every time; what was cut off, or could mean two things, is not.
func TestS4U10Repair(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		cut            bool // the answer was
	}{
		{name: "fine", in: ` {"a": 1} `, want: `{"a":1}`},
		{name: "empty", in: ``, want: `{}`},
		{name: "null", in: `null`, want: `{}`},
		{name: "fence", in: "```json\n{\"a\":1}\n```", want: `{"a":1}`},
		{name: "fence without a word", in: "```\n{\"a\":1}```", want: `{"a":1}`},
		{name: "trailing commas", in: `{"a":[1,2,],"b":{"c":1,},}`, want: `{"a":[1,2],"b":{"c":1}}`},
		{name: "two trailing commas", in: `{"a":1,,}`, want: `{"a":1}`},
		{name: "single quotes", in: `{'a': 'it\'s "so"'}`, want: `{"a":"it's \"so\""}`},
		{name: "open braces", in: `{"a":{"b":[1,2`, want: `{"a":{"b":[1,2]}}`},
		{name: "open braces after a comma", in: `{"a":1,`, want: `{"a":1}`},
		{name: "a break in a string", in: "{\"a\":\"x\ny\"}", want: `{"a":"x\ny"}`},
		{name: "an object in a string", in: `"{\"a\":1}"`, want: `{"a":1}`},
		{name: "an open string", in: `{"path":"/home/ada/not`},
		{name: "no value", in: `{"a":`},
		{name: "two objects", in: `{"a":1}{"b":2}`},
		{name: "a brace too many", in: `{"a":1}}`},
		{name: "words", in: `please call it with a=1`},
		{name: "a list", in: `[1,2]`},
		{name: "too much to repair", in: strings.Repeat("{", maxRepairBytes+1)},
		{name: "a number", in: `7`},
		{name: "twice the same key", in: `{"a":1,"a":2}`},
		{name: "open braces of an answer that was cut", in: `{"a":{"b":[1,2`, cut: true},
	} {
		got, note, err := Arguments([]byte(c.in), !c.cut)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: Arguments(%s) = %s, want an error", c.name, c.in, got)
			}
			continue
		}
		var b bytes.Buffer
		if err != nil || json.Compact(&b, got) != nil || b.String() != c.want {
			t.Errorf("%s: Arguments(%s) = %s, %v; want %s", c.name, c.in, got, err, c.want)
		}
		if fine := json.Valid([]byte(strings.TrimSpace(c.in))) && !strings.HasPrefix(c.in, `"`) || c.in == ""; fine == (note != "") {
			t.Errorf("%s: note = %q", c.name, note)
		}
	}
}

// TestRepairLeavesJSONAlone: an object of any kind stays as it is.
func TestRepairLeavesJSONAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.String(), rapid.OneOf(rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.SliceOf(rapid.String()).AsAny())).Draw(t, "object")
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, note, err := Arguments(raw, true)
		if err != nil || note != "" || !bytes.Equal(got, raw) {
			t.Fatalf("Arguments(%s) = %s, %q, %v", raw, got, note, err)
		}
		if mended := mend(string(raw)); mended != string(raw) {
			t.Fatalf("fix(%s) = %s", raw, mended)
		}
	})
}

// FuzzReadArguments: whatever comes out is one JSON object or an error.
func FuzzReadArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "```json\n{'a':1,}\n```", `{"a":{"b":[1,2`, `{"a":"`, `{'a':'\`, `"{}"`, "`", "```", "```\n"} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, whole bool) {
		got, _, err := Arguments(raw, whole)
		if err != nil {
			return
		}
		if _, err := capability.CanonicalJSON(got); err != nil || got[0] != '{' {
			t.Errorf("Arguments(%q) = %q, which is no object: %v", raw, got, err)
		}
		again, _, err := Arguments(raw, whole)
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("Arguments(%q) = %q and then %q, %v", raw, got, again, err)
		}
	})
}

// BenchmarkRepair is what the most that is repaired costs where it cannot be JSON: no
// more than its length.
func BenchmarkRepair(b *testing.B) {
	n := maxRepairBytes - 10
	for name, in := range map[string]string{
		"commas": `{"a":` + strings.Repeat(",", n), "list": `{"a":[1` + strings.Repeat(",\n", n/2) + `]}`, "braces": strings.Repeat("{", n), "quotes": strings.Repeat(`{"`, n/2),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _, _ = Arguments([]byte(in), true)
			}
		})
	}
}
