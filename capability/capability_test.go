package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestDigestIgnoresSpellingOnly(t *testing.T) {
	base := Call{
		Target: "tool:x", Action: "get", Arguments: json.RawMessage(`{"a":1,"b":[true,"x"]}`),
		Principal: Principal{ID: "ada", Tenant: "t"}, Session: "s", Intent: "READ_FILE", Mode: "code", CapabilityHash: "h",
	}
	want, err := base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	respelled := base
	respelled.Arguments = json.RawMessage("{ \"b\": [true, \"\\u0078\"],\n\"a\": 1 }")
	if got, err := respelled.Digest(); err != nil || got != want {
		t.Errorf("respelled arguments: Digest() = %q, %v, want %q", got, err, want)
	}
	changes := map[string]func(*Call){
		"target":    func(c *Call) { c.Target = "tool:y" },
		"action":    func(c *Call) { c.Action = "put" },
		"arguments": func(c *Call) { c.Arguments = json.RawMessage(`{"a":1.0,"b":[true,"x"]}`) },
		"principal": func(c *Call) { c.Principal.ID = "eve" },
		"tenant":    func(c *Call) { c.Principal.Tenant = "u" },
		"session":   func(c *Call) { c.Session = "s2" },
		"intent":    func(c *Call) { c.Intent = "EXECUTE" },
		"mode":      func(c *Call) { c.Mode = "ask" },
		"hash":      func(c *Call) { c.CapabilityHash = "h2" },
		"borders":   func(c *Call) { c.Intent, c.Mode = "READ_FILEc", "ode" },
	}
	for name, change := range changes {
		c := base
		change(&c)
		if got, err := c.Digest(); err != nil || got == want {
			t.Errorf("%s changed: Digest() = %q, %v, want another digest", name, got, err)
		}
	}
}

func TestDigestRefusesAmbiguousArguments(t *testing.T) {
	for _, args := range []string{`{"a":1,"a":2}`, `{"x":{"a":1,"a":1}}`, `{} {}`, `{"a":`, `[[`} {
		if d, err := (Call{Arguments: json.RawMessage(args)}).Digest(); err == nil {
			t.Errorf("Digest of arguments %s = %q, want an error", args, d)
		}
	}
}

func TestTrustRoundTripsAndRefusesUnknownWords(t *testing.T) {
	for _, level := range []Trust{TrustRemote, TrustWorkspace, TrustUser, TrustBuiltin} {
		text, _ := level.MarshalText()
		var got Trust
		if err := got.UnmarshalText(text); err != nil || got != level {
			t.Errorf("UnmarshalText(%s) = %v, %v, want %v", text, got, err, level)
		}
	}
	var got Trust
	if err := got.UnmarshalText([]byte("trusted")); err == nil || got != TrustRemote {
		t.Errorf("UnmarshalText(trusted) = %v, %v, want an error and the least trust", got, err)
	}
}

func TestHintKeepsSilenceApartFromNo(t *testing.T) {
	for _, h := range []Hint{Unsaid, No, Yes} {
		b, _ := json.Marshal(h)
		var got Hint
		if err := json.Unmarshal(b, &got); err != nil || got != h {
			t.Errorf("hint %d through JSON %s = %d, %v", h, b, got, err)
		}
	}
	if c := (&Capability{}); !c.HasSideEffects() {
		t.Error("a capability that says nothing is taken to be free of side effects")
	}
}

func TestDisplayName(t *testing.T) {
	for in, want := range map[string]string{
		"web-search": "Web Search", "cli_executor": "Cli Executor", "émile": "Émile", "": "", "--": "",
	} {
		if got := DisplayName(in); got != want {
			t.Errorf("DisplayName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestKindOfFindsTheKindThroughWrapping(t *testing.T) {
	err := fmt.Errorf("turn: %w", &Error{Kind: Denied, Op: "decide", Target: "tool:x"})
	if got := KindOf(err); got != Denied {
		t.Errorf("KindOf(%v) = %v, want %v", err, got, Denied)
	}
	if got := KindOf(errors.New("plain")); got != Internal {
		t.Errorf("KindOf(plain) = %v, want %v", got, Internal)
	}
}

func TestProblemSaysWhereWhatAndTheMend(t *testing.T) {
	p := Problem{Origin: Origin{Path: "a/CAPABILITY.yaml", Line: 3}, Message: "kind is missing", Fix: "add kind: tool"}
	if got, want := p.String(), "a/CAPABILITY.yaml:3: kind is missing; add kind: tool"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}
