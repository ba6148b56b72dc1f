package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

// script makes a hook whose command is a shell script.
func script(t *testing.T, text string, tools ...string) *Hook {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "hook.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{Name: "lint", Command: []string{file}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Tools: tools, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHookDecides: what a command says is what happens, and what it does not
// say clearly is a refusal.
func TestHookDecides(t *testing.T) {
	call := capability.Call{Target: "tool:write_to_file", Arguments: json.RawMessage(`{"path":"a.txt","content":"x","lines":[1,2,3],"force":true,"count":9}`)}
	tests := []struct {
		name, script string
		arguments    string // "" is as they were
		refused      string // "" goes on
	}{
		{"silence", "cat >/dev/null", "", ""},
		{"unread input", "exit 0", "", ""},
		{"allow", `cat >/dev/null; echo '{"decision":"allow"}'`, "", ""},
		{"deny", `cat >/dev/null; echo '{"decision":"deny","reason":"not on Fridays"}'`, "", "not on Fridays"},
		{"deny without a reason", `cat >/dev/null; echo '{"decision":"deny"}'`, "", "no reason given"},
		{"status two", `echo "no tabs, please" >&2; exit 2`, "", "no tabs, please"},
		{"broken", "echo oops >&2; exit 1", "", "status 1: oops"},
		{"killed", "kill -9 $$", "", "was ended"},
		{"no JSON", "echo yes", "", "cannot be parsed"},
		{"an unknown word", `echo '{"decisions":"deny"}'`, "", "cannot be parsed"},
		{"an unknown decision", `echo '{"decision":"perhaps"}'`, "", `the decision "perhaps"`},
		{"two answers", `echo '{} {"decision":"deny"}'`, "", "followed by more text"},
		{"narrower", `echo '{"arguments":{"path":"a.txt","lines":[1,3],"force":false,"count":5}}'`, `{"path":"a.txt","lines":[1,3],"force":false,"count":5}`, ""},
		{"another path", `echo '{"arguments":{"path":"/etc/passwd"}}'`, "", "path: the text differs from the original"},
		{"a new name", `echo '{"arguments":{"sudo":true}}'`, "", `"sudo" is not in the original`},
		{"more", `echo '{"arguments":{"count":10}}'`, "", "larger than the original"},
		{"below zero", `echo '{"arguments":{"count":-1}}'`, "", "larger than the original"},
		{"no object", `echo '{"arguments":[1]}'`, "", "not an object"},
		{"it sees the call", `grep -q '"target":"tool:write_to_file"' || exit 3; echo seen >&2; exit 2`, "", "seen"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := script(t, tt.script).Before(t.Context(), call)
			switch {
			case tt.refused == "" && err != nil:
				t.Fatalf("Before = %v, want that it goes on", err)
			case tt.refused != "":
				if err == nil || !strings.Contains(err.Error(), tt.refused) || capability.KindOf(err) != capability.Denied || !strings.Contains(err.Error(), "hooks.lint") {
					t.Fatalf("Before = %v, want a refusal by hooks.lint with %q", err, tt.refused)
				}
				return
			}
			want := tt.arguments
			if want == "" {
				want = string(call.Arguments)
			}
			if string(got.Arguments) != want {
				t.Errorf("arguments = %s, want %s", got.Arguments, want)
			}
		})
	}
}

// TestHookTimeout: a command that does not answer refuses.
func TestHookTimeout(t *testing.T) {
	h := script(t, "sleep 60")
	h.cfg.Timeout = 100 * time.Millisecond
	if _, err := h.Before(t.Context(), capability.Call{Target: "tool:x"}); err == nil || !strings.Contains(err.Error(), "did not answer within 100 ms") {
		t.Errorf("Before = %v, want a refusal", err)
	}
}

// TestHookConcerns: a hook is asked about what it names.
func TestHookConcerns(t *testing.T) {
	h := func(tools ...string) *Hook { return script(t, "exit 2", tools...) }
	tests := []struct {
		hook *Hook
		id   capability.ID
		want bool
	}{
		{h(), "tool:x", true},
		{h("write_to_file"), "tool:write_to_file", true},
		{h("tool:write_to_file"), "tool:write_to_file", true},
		{h("write_to_file"), "tool:read_file", false},
		{h("mcp:github/*"), "mcp:github/create_issue", true},
		{h("mcp:*"), "mcp:github/create_issue", true},
		{h("mcp:*"), "tool:x", false},
		{h("*_file"), "tool:read_file", true},
	}
	for _, tt := range tests {
		if got := tt.hook.concerns(tt.id); got != tt.want {
			t.Errorf("a hook about %v concerns %s: %v, want %v", tt.hook.cfg.Tools, tt.id, got, tt.want)
		}
	}
	if _, err := New(Config{Name: "a", Command: []string{"/bin/true"}, Tools: []string{"["}}); err == nil {
		t.Error("New with a bad pattern = nil, want an error")
	}
}

func FuzzNarrows(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":1}`)
	f.Add(`{"a":[1,{"b":true}],"c":"x"}`, `{"a":[{"b":false}]}`)
	f.Add(`{"a":1e400}`, `{"a":-0}`)
	f.Fuzz(func(t *testing.T, old, now string) {
		if len(old)+len(now) > 4096 || narrows(json.RawMessage(old), json.RawMessage(now)) != nil {
			return
		}
		if err := narrows(json.RawMessage(now), json.RawMessage(now)); err != nil {
			t.Fatalf("%s is not as narrow as itself: %v", now, err)
		}
		var was, is map[string]json.RawMessage
		if old != "" && json.Unmarshal([]byte(old), &was) != nil || json.Unmarshal([]byte(now), &is) != nil || len(is) > len(was) {
			t.Fatalf("%s counts as narrower than %s", now, old)
		}
	})
}
