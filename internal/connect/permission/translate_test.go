package permission

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// written returns rules as text, one each.
func written(rules []Rule) (out []string) {
	for _, r := range rules {
		out = append(out, r.Effect+" "+strings.Join(r.Capabilities, " "))
	}
	return out
}

// TestResiduals: what a pattern of a tool's full name leaves for the tool of a
// server is what the full name would have matched.
func TestResiduals(t *testing.T) {
	for _, c := range []struct {
		pattern, prefix string
		want            string
	}{
		{"mcp__github__delete_repo", "mcp__github__", "delete_repo"},
		{"mcp__github__*", "mcp__github__", "*"},
		{"mcp__*", "mcp__github__", "*"},
		{"*", "mcp__github__", "*"},
		{"mcp__git*__delete*", "mcp__github__", "*__delete* _delete* delete*"},
		{"mcp__gitlab__x", "mcp__github__", ""},
		{"mcp__github", "mcp__github__", ""},
		{"github_*_repo", "github_", "*_repo"},
	} {
		if got := strings.Join(residuals(c.pattern, c.prefix), " "); got != c.want {
			t.Errorf("residuals(%q, %q) = %q, want %q", c.pattern, c.prefix, got, c.want)
		}
	}
}

// TestProjectAllows: files in a project's folder forbid and ask, and allow nothing.
// What is allowed for a folder in the user's own file counts.
func TestProjectAllows(t *testing.T) {
	docs := map[string]map[string]any{
		"/home/a/.claude.json": {"projects": map[string]any{"/repo": map[string]any{"allowedTools": []any{"mcp__notes__mine"}}}},
		"/repo/.claude/settings.json": {"permissions": map[string]any{
			"allow": []any{"mcp__notes__wipe"}, "deny": []any{"mcp__notes__send"}, "ask": []any{"mcp__notes__write"}}},
		"/repo/.claude/settings.local.json": {"permissions": map[string]any{"allow": []any{"mcp__notes__local"}}},
		"/home/a/.claude/settings.json":     {"permissions": map[string]any{"allow": []any{"mcp__notes__read"}}},
	}
	all, err := Read("claude", Config{
		Files: []File{{Path: "/home/a/.claude.json"}}, Home: "/home/a", GOOS: "linux", Getenv: func(string) string { return "" },
		Read: func(path string, _ bool) (map[string]any, func([]string) []string, error) {
			return docs[path], nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := Translate(Client{Name: "claude", Title: "Claude Code", Servers: []Server{{Name: "notes", Client: "notes"}}}, all)
	got := written(out.Rules)
	slices.Sort(got)
	want := []string{"allow mcp:notes/mine", "allow mcp:notes/read", "ask mcp:notes/write", "deny mcp:notes/send"}
	if !slices.Equal(got, want) {
		t.Errorf("rules %q, want %q", got, want)
	}
	notes := strings.Join(out.Notes, "\n")
	for _, tool := range []string{"mcp__notes__wipe (permissions.allow in /repo/.claude/settings.json): " + byOthers, "mcp__notes__local"} {
		if !strings.Contains(notes, tool) {
			t.Errorf("notes %q, want %q in them", notes, tool)
		}
	}
}

// TestProjectPolicies: a rule in a project's folder takes no rule of the user's back,
// whatever its priority.
func TestProjectPolicies(t *testing.T) {
	home, repo := t.TempDir(), t.TempDir()
	docs := map[string]map[string]any{}
	for dir, rule := range map[string]map[string]any{
		home: {"mcpName": "notes", "toolName": "wipe", "decision": "deny", "priority": int64(100)},
		repo: {"mcpName": "notes", "decision": "allow", "priority": int64(999)},
	} {
		path := filepath.Join(dir, ".gemini", "policies", "rules.toml")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		docs[path] = map[string]any{"rule": []any{rule}}
	}
	all, err := Read("gemini", Config{
		Files: []File{{Path: filepath.Join(home, ".gemini", "settings.json")}, {Path: filepath.Join(repo, ".gemini", "settings.json"), Project: repo}}, Home: home,
		Read: func(path string, _ bool) (map[string]any, func([]string) []string, error) {
			return docs[path], nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out := Translate(Client{Name: "gemini", Title: "Gemini CLI", Servers: []Server{{Name: "notes", Client: "notes"}}}, all)
	if len(out.Rules) != 1 || out.Rules[0].Effect != "deny" || !slices.Equal(out.Rules[0].Capabilities, []string{"mcp:notes/wipe"}) || len(out.Rules[0].Except) > 0 {
		t.Errorf("rules %+v, want the user's denial alone", out.Rules)
	}
}

// TestTranslate: names of servers that Ken calls otherwise, and those of servers
// that stay in the client or are elsewhere.
func TestTranslate(t *testing.T) {
	c := Client{
		Name: "claude", Title: "Claude Code", Kept: []string{"stays"},
		Servers: []Server{{Name: "github-claude", Client: "github"}, {Name: "my-tools-1a2b", Client: "my tools"}},
	}
	var all []Decision
	for _, tool := range []string{"mcp__github", "mcp__my_tools__x", "mcp__stays__x", "mcp__other__x", "mcp__*__wipe"} {
		all = append(all, Decision{effect: denied, tool: tool, said: tool, where: "a test"})
	}
	all = append(all, Decision{effect: allowed, tool: "mcp__other__y", said: "y", where: "a test"})
	got := written(Translate(c, all).Rules)
	want := []string{
		"deny mcp:github-claude/*", "deny mcp:my-tools-1a2b/x", "deny mcp:other/x",
		"deny mcp:*/wipe mcp:github-claude/*__wipe mcp:github-claude/_wipe mcp:github-claude/wipe mcp:my-tools-1a2b/*__wipe mcp:my-tools-1a2b/_wipe mcp:my-tools-1a2b/wipe",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rules:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
