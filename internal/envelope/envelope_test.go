package envelope

import (
	"encoding/json"
	"testing"

	"ken/capability"
)

func TestRead(t *testing.T) {
	for _, key := range []string{"capability", "id", "name"} {
		got, err := Read([]byte(`{"` + key + `":"tool:look","action":"far","arguments":{"text":"in"}}`))
		if err != nil || got.Capability != "tool:look" || got.Action != "far" || string(got.Arguments) != `{"text":"in"}` {
			t.Errorf("Read with %s = %+v, %v", key, got, err)
		}
	}
	for _, args := range []string{
		``, `{}`, `[]`, `null`, `"a"`, `{"capability":""}`, `{"capability":7}`, `{"capability":"a","action":{}}`,
		`{"capability":"a","x":1}`, `{"capability":"a","path":"notes.txt"}`,
		`{"capability":"a","id":"b"}`, `{"id":"a","name":"a"}`, `{"capability":"a","capability":"b"}`,
		`{"ID":"a"}`, `{"Capability":"a"}`, `{"capability":"a"}{}`,
		`{"capability":"invoke_capability"}`, `{"id":"tool:invoke_capability"}`,
	} {
		if got, err := Read([]byte(args)); err == nil {
			t.Errorf("Read(%s) = %+v, want an error", args, got)
		}
	}
}

func TestWrite(t *testing.T) {
	for _, e := range []Envelope{
		{Capability: "a"},
		{Capability: `a"b`, Action: "c", Arguments: json.RawMessage(`{"d":1}`)},
	} {
		got, err := Read(Write(e))
		if err != nil || got.Capability != e.Capability || got.Action != e.Action || string(got.Arguments) != string(e.Arguments) {
			t.Errorf("Read(Write(%+v)) = %+v, %v", e, got, err)
		}
	}
	for _, text := range []string{`{"cut`, "no JSON \xff"} {
		got, err := Read(Write(Envelope{Capability: "a", Arguments: json.RawMessage(text)}))
		var kept string
		if err != nil || json.Unmarshal(got.Arguments, &kept) != nil || kept == "" {
			t.Errorf("arguments %q became %s, %v, want text", text, got.Arguments, err)
		}
	}
}

func TestUnwrap(t *testing.T) {
	plain := capability.Call{Target: "tool:look", Arguments: json.RawMessage(`{"capability":"x"}`)}
	if got, err := Unwrap(plain); err != nil || got.Target != "tool:look" || string(got.Arguments) != `{"capability":"x"}` {
		t.Errorf("Unwrap of another call = %+v, %v", got, err)
	}
	for _, target := range []capability.ID{"invoke_capability", "tool:invoke_capability"} {
		call := capability.Call{Target: target, Session: "s", Intent: "READ", CapabilityHash: "old", Arguments: json.RawMessage(`{"capability":"tool:look","arguments":{}}`)}
		got, err := Unwrap(call)
		if err != nil || got.Target != "tool:look" || string(got.Arguments) != `{}` || got.Session != "s" || got.Intent != "READ" || got.CapabilityHash != "" {
			t.Errorf("Unwrap(%s) = %+v, %v", target, got, err)
		}
		call.Arguments = json.RawMessage(`{}`)
		if got, err := Unwrap(call); capability.KindOf(err) != capability.Invalid || got.Target != target {
			t.Errorf("Unwrap of {} = %+v, %v, want it invalid and unchanged", got, err)
		}
	}
	two := capability.Call{Target: "invoke_capability", Action: "a", Arguments: json.RawMessage(`{"capability":"x","action":"b"}`)}
	if _, err := Unwrap(two); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Unwrap of two actions = %v, want it invalid", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"capability":"a","arguments":{"b":1}}`))
	f.Add([]byte(`{"id":"a","action":"b"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Read(data)
		if err != nil {
			return
		}
		again, err := Read(Write(e))
		if err != nil || again.Capability != e.Capability || again.Action != e.Action {
			t.Errorf("Read(%q) = %+v, written and read again %+v, %v", data, e, again, err)
		}
	})
}

// TestPlainIsRead checks that the usual arguments are read in one pass, and that the
// one pass and the full reader return the same.
func TestPlainIsRead(t *testing.T) {
	for _, tt := range []struct {
		args  string
		plain bool
	}{
		{`{"capability":"mcp:a/b","arguments":{"text":"one","n":[1,{"x":null}]}}`, true},
		{` { "id" : "tool:look" , "action" : "far" } `, true},
		{`{"arguments":null,"name":"a"}`, true},
		{`{"capability":"a\u0062"}`, false},
		{`{"c\u0061pability":"a"}`, true},
		{`{"capability":"a","arguments":{"x":1,"x":2}}`, false},
		{`{"capability":"a","arguments":{"x":1,"\u0078":2}}`, false},
		{`{"capability":"a","id":"a"}`, false},
		{`{"capability":"a","action":null}`, false},
		{`{"capability":"","id":"a"}`, false},
		{`{"capability":"tool:invoke_capability"}`, false},
		{`{"capability":"a","other":1}`, false},
		{`{"capability":"a"}}`, false},
		{`["capability","a"]`, false},
		{"{\"capability\":\"a\xff\"}", false},
		{"{\"capability\":\"a\",\"arguments\":{\"\xff\":1,\"\xfe\":2}}", false}, // one name to a decoder
	} {
		got, plain := readPlain([]byte(tt.args))
		if plain != tt.plain {
			t.Errorf("readPlain(%s) reports %t, want %t", tt.args, plain, tt.plain)
		}
		if !plain {
			continue
		}
		want, err := readFully([]byte(tt.args))
		if err != nil || got.Capability != want.Capability || got.Action != want.Action || string(got.Arguments) != string(want.Arguments) {
			t.Errorf("readPlain(%s) = %+v, readFully = %+v, %v", tt.args, got, want, err)
		}
	}
}

func FuzzReadPlain(f *testing.F) {
	f.Add([]byte(`{"capability":"a","arguments":{"b":1}}`))
	f.Add([]byte("{\"capability\":\"a\",\"arguments\":{\"\xff\":1,\"\xfe\":2}}"))
	f.Add([]byte(`{"id":"a","action":"b","arguments":{"b":[{"c":"\u0062"}],"b ":1.5e3}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, plain := readPlain(data)
		if !plain {
			return
		}
		want, err := readFully(data)
		if err != nil || got.Capability != want.Capability || got.Action != want.Action || string(got.Arguments) != string(want.Arguments) {
			t.Errorf("readPlain(%q) = %+v, readFully = %+v, %v", data, got, want, err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	args := []byte(`{"capability":"mcp:many/echo","arguments":{"text":"say this again, number 17"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(args); err != nil {
			b.Fatal(err)
		}
	}
}
