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
