package app

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
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
		"find-files":       {"*.go", `{"name":"*.go"}`},
		"git-log":          {"", `{}`},
		"git-status":       {"", `{}`},
		"hash-file":        {"a b", `{"files":["a","b"]}`},
		"http-fetch":       {"https://example.com/?a=1&b=2", `{"url":"https://example.com/?a=1\u0026b=2"}`},
		"json-format":      {`{"a": [1]}`, `{"json":"{\"a\": [1]}"}`},
		"list-files":       {"", `{}`},
		"news-search":      {"elections in rome", `{"query":"elections in rome"}`},
		"process-list":     {"", `{}`},
		"read-file":        {"README.md 5", `{"path":"README.md","lines":5}`},
		"search-text":      {"TODO src", `{"pattern":"TODO","path":"src"}`},
		"sqlite-query":     {"a.db 'select 1'", `{"database":"a.db","sql":"select 1"}`},
		"system-info":      {"", `{}`},
		"text-translation": {"hello", `{"text":"hello"}`},
		"web-browser":      {"https://example.com/", `{"url":"https://example.com/"}`},
		"web-search":       {"weather in rome", `{"query":"weather in rome"}`},
		"word-count":       {"a b", `{"files":["a","b"]}`},
	}
	_, getenv := home(t, nil)
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	checked := 0
	for e := range all(a.catalog.Snapshot(), a.own.Snapshot()) {
		if e.Kind != capability.KindTool || e.Run == nil || e.Unavailable != "" {
			continue
		}
		c, ok := lines[e.Name]
		if !ok {
			t.Errorf("/%s has no line in this test; write the one that a person would", e.Name)
			continue
		}
		checked++
		call, err := a.Route(t.Context(), a.Principal, strings.TrimSpace("/"+e.Name+" "+c.line))
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
	_, getenv := home(t, nil)
	work := t.TempDir()
	write(t, filepath.Join(work, "sub", "inside"), "")
	a := open(t, Config{Getenv: getenv, Dir: work})
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
		call, err := a.Route(t.Context(), a.Principal, "/shell "+c.line)
		if err != nil || string(canonical(t, call.Arguments)) != string(canonical(t, json.RawMessage(c.want))) {
			t.Errorf("Route(/shell %s) = %s, %v, want %s", c.line, call.Arguments, err, c.want)
		}
	}
	if _, err := a.Route(t.Context(), a.Principal, "/shell cmd=ls pwd"); err == nil || !strings.Contains(err.Error(), "cmd is given twice") {
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
