package permission

import (
	"slices"
	"strings"
	"testing"
)

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
	var got []string
	for _, r := range Translate(c, all).Rules {
		got = append(got, r.Effect+" "+strings.Join(r.Capabilities, " "))
	}
	want := []string{
		"deny mcp:github-claude/*", "deny mcp:my-tools-1a2b/x", "deny mcp:other/x",
		"deny mcp:*/wipe mcp:github-claude/*__wipe mcp:github-claude/_wipe mcp:github-claude/wipe mcp:my-tools-1a2b/*__wipe mcp:my-tools-1a2b/_wipe mcp:my-tools-1a2b/wipe",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rules:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
