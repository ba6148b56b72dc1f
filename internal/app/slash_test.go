package app

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/talk/commands"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/llm/llmtest"
)

// TestPlainLines: every tool of the program and of the starter catalog that
// can be called here takes the line that a person would write.
func TestPlainLines(t *testing.T) {
	lines := map[string]struct{ line, want string }{
		"shell":            {"echo hi", `{"cmd":"echo hi"}`},
		"read_file":        {"README.md", `{"path":"README.md"}`},
		"write_to_file":    {"a.txt some words", `{"path":"a.txt","content":"some words"}`},
		"apply_diff":       {"'@@ -1 +1 @@'", `{"diff":"@@ -1 +1 @@"}`},
		"list_files":       {"src", `{"path":"src"}`},
		"search_files":     {"TODO src", `{"regex":"TODO","path":"src"}`},
		"read_result":      {"last", `{"handle":"last"}`},
		"analyze_response": {"last what went wrong?", `{"response":"last","question":"what went wrong?"}`},
		"analyze_schema":   {`'{"type":"object"}'`, `{"schema":{"type":"object"}}`},

		"cli-executor":     {"git log -1 --oneline", `{"program":"git","args":["log","-1","--oneline"]}`},
		"date-time":        {"", `{}`},
		"diff-files":       {"a b", `{"old":"a","new":"b"}`},
		"disk-usage":       {"src", `{"path":"src"}`},
		"dns-lookup":       {"localhost", `{"name":"localhost"}`},
		"file-info":        {"a b", `{"files":["a","b"]}`},
		"find-files":       {"*.go", `{"name":"*.go"}`},
		"git-log":          {"", `{}`},
		"git-status":       {"", `{}`},
		"hash-file":        {"a b", `{"files":["a","b"]}`},
		"http-fetch":       {"https://example.com/?a=1&b=2", `{"url":"https://example.com/?a=1\u0026b=2"}`},
		"json-format":      {`{"a": [1]}`, `{"json":"{\"a\": [1]}"}`},
		"list-archive":     {"a.tgz", `{"path":"a.tgz"}`},
		"news-search":      {"elections in rome", `{"query":"elections in rome"}`},
		"process-list":     {"", `{}`},
		"sort-lines":       {"a b", `{"files":["a","b"]}`},
		"sqlite-query":     {"a.db 'select 1'", `{"database":"a.db","sql":"select 1"}`},
		"system-info":      {"", `{}`},
		"text-translation": {"hello", `{"text":"hello"}`},
		"web-browser":      {"https://example.com/", `{"url":"https://example.com/"}`},
		"web-search":       {"weather in rome", `{"query":"weather in rome"}`},
		"word-count":       {"a b", `{"files":["a","b"]}`},
	}
	a := open(t, Config{})
	checked := 0
	for _, e := range slices.AppendSeq(slices.Collect(a.Catalog.Snapshot().All()), a.own.Snapshot().All()) {
		if e.Kind != capability.KindTool || e.Run == nil || e.Unavailable != "" {
			continue
		}
		c, ok := lines[e.Name]
		if !ok {
			t.Errorf("/%s has no line in this test; write the one that a person would", e.Name)
			continue
		}
		checked++
		call, err := a.Commands.Route(t.Context(), commands.Caller{Principal: a.Principal}, strings.TrimSpace("/"+e.Name+" "+c.line))
		if err != nil || call.Target != e.ID || string(call.Arguments) != c.want {
			t.Errorf("Route(/%s %s) = %s %s, %v, want %s", e.Name, c.line, call.Target, call.Arguments, err, c.want)
		}
	}
	if checked < 9 { // those that are part of the program need nothing of the machine
		t.Errorf("%d lines were checked, want at least 9", checked)
	}
}

// TestShellLines: what follows /shell is the command line, as it was typed.
func TestShellLines(t *testing.T) {
	work := t.TempDir()
	write(t, filepath.Join(work, "sub", "inside"), "")
	a := open(t, Config{Dir: work})
	for _, c := range []struct{ line, want string }{
		{"echo hi", `{"cmd":"echo hi"}`},
		{"'echo hi'", `{"cmd":"echo hi"}`},
		{`"echo hi"`, `{"cmd":"echo hi"}`},
		{`echo "two  blanks" 'and \ this'`, `{"cmd":"echo \"two  blanks\" 'and \\ this'"}`},
		{"ls -la --color=no", `{"cmd":"ls -la --color=no"}`},
		{"FOO=bar env", `{"cmd":"FOO=bar env"}`},
		{"--cwd sub ls --cwd", `{"cmd":"ls --cwd","cwd":"sub"}`},
		{"cwd=sub timeoutMs=500 ls", `{"cmd":"ls","cwd":"sub","timeoutMs":500}`},
		{`cmd="echo hi" cwd=sub`, `{"cmd":"echo hi","cwd":"sub"}`},
		{"command='echo hi'", `{"command":"echo hi"}`},
		{"-- --cwd", `{"cmd":"--cwd"}`},
	} {
		call, err := a.Commands.Route(t.Context(), commands.Caller{Principal: a.Principal}, "/shell "+c.line)
		if err != nil || string(canonical(t, call.Arguments)) != string(canonical(t, json.RawMessage(c.want))) {
			t.Errorf("Route(/shell %s) = %s, %v, want %s", c.line, call.Arguments, err, c.want)
		}
	}
	if _, err := a.Commands.Route(t.Context(), commands.Caller{Principal: a.Principal}, "/shell cmd=ls pwd"); err == nil || !strings.Contains(err.Error(), "cmd is given twice") {
		t.Errorf("Route(/shell cmd=ls pwd) = %v, want that cmd is given twice", err)
	}
}

// canonical writes JSON with its keys in order.
func canonical(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sayAs makes the first turn of a session and gives how it ended.
func sayAs(t *testing.T, a *App, head session.Head, text string) event.Done {
	t.Helper()
	sessions, err := a.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	head.Folder = a.Places.Workspace
	head, err = sessions.Begin(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	e, err := a.Engine()
	if err != nil {
		t.Fatal(err)
	}
	who := capability.Principal{ID: head.Principal, Tenant: head.Tenant}
	var done event.Done
	for ev, err := range e.Turn(t.Context(), event.Input{Principal: who, Session: head.ID, Text: text, Surface: "chat", Alone: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(event.Done); ok {
			done = d
		}
	}
	return done
}

// TestCommandsThatAreNone: in the assembled program a line that looks like a command
// and is none that they can type says so and why, without what is not theirs to know,
// and no model is asked.
func TestCommandsThatAreNone(t *testing.T) {
	testkit.CI(t, "opens the program often")
	const broken = `{"global": {"enabled": true, "mod": "full"}}`
	for _, c := range []struct {
		name, access string
		other        bool
		text         string
		reason       event.End
		why          string // empty: the model is asked
	}{
		{"an unknown one", "", true, "/list_flies", event.EndFailed, "no command has this name; did you mean /list-files or /list_files?"},
		{"one that is hidden", "", true, "/search_files TODO", event.EndFailed, "no command has this name; "},
		{"one that is hidden, of the owner's", "", false, "/search_files TODO", event.EndCommand, "no-search"},
		{"without rules", broken, true, "/list_files", event.EndFailed, "there are no rules, so nothing is allowed: the configuration cannot be followed (no-rules); ken doctor says where; "},
		{"without rules, of the owner's", broken, false, "/list_files", event.EndCommand, "tool-access.json"},
		{"a path without rules", broken, true, "/etc/passwd is what?", event.EndAnswer, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, getenv := home(t, map[string]string{".ken/ken.yaml": "policy: {rules: [{id: no-search, effect: deny, capabilities: ['tool:search_files']}]}\n"})
			fake := &llmtest.Fake{Script: llmtest.Always(llmtest.Reply{Text: "Hello."})}
			a := open(t, Config{Getenv: getenv, Model: fake})
			if c.access != "" {
				write(t, filepath.Join(dir, ".ken", "context", "tool-access.json"), c.access)
			}
			who := a.Principal
			if c.other {
				who = capability.Principal{ID: "ben"}
			}
			done := sayAs(t, a, session.Head{Tenant: who.Tenant, Principal: who.ID}, c.text)
			if done.Reason != c.reason || !strings.Contains(done.Why, c.why) {
				t.Errorf("%s ended as %s: %s; want %s with %q", c.text, done.Reason, done.Why, c.reason, c.why)
			}
			if asked := len(fake.Requests()) > 0; asked != (c.reason == event.EndAnswer) {
				t.Errorf("%s: the model is asked: %v", c.text, asked)
			}
			if c.reason == event.EndFailed && !strings.HasSuffix(done.Why, "to say it to the model put a blank or a second slash before it") {
				t.Errorf("%s does not say how to ask the model: %s", c.text, done.Why)
			}
			if c.other && (strings.Contains(done.Why, dir) || strings.Contains(done.Why, "search_files")) {
				t.Errorf("%s tells what is not theirs to know: %s", c.text, done.Why)
			}
		})
	}
}
