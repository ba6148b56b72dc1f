package permission

import (
	"strings"
	"testing"
)

// TestFurtherClients: what people decided in clients whose settings are in files
// of their own. Decisions about the client's own tools are none of Ken's.
func TestFurtherClients(t *testing.T) {
	list := func(items ...any) any { return items }
	for client, c := range map[string]struct {
		file string
		doc  map[string]any
		want string
	}{
		"copilot": {"permissions-config.json", map[string]any{"locations": map[string]any{"/w": map[string]any{"tool_approvals": list(
			map[string]any{"kind": "mcp", "serverName": "my notes", "toolName": "a"}, map[string]any{"kind": "mcp", "serverName": "my notes", "toolName": nil},
			map[string]any{"kind": "commands"}, "odd", map[string]any{"kind": "mcp", "serverName": "other", "toolName": "a"},
		)}}}, "allow mcp:notes/a, allow mcp:notes/*"},
		"continue": {"permissions.yaml", map[string]any{"exclude": list("wipe", "Bash(rm*)", "Write"), "ask": list("key_*"), "allow": list("*", "echo")},
			"deny mcp:notes/wipe, ask mcp:notes/key_*, allow mcp:notes/echo"},
		"goose": {"permission.yaml", map[string]any{"user": map[string]any{"never_allow": list("mynotes__wipe", "developer__shell"), "ask_before": list("my notes__key"), "always_allow": list("mynotes__echo")},
			"smart_approve": map[string]any{"always_allow": list("mynotes__x")}}, "deny mcp:notes/wipe, ask mcp:notes/key, allow mcp:notes/echo"},
		"crush": {"crush.json", map[string]any{"options": map[string]any{"disabled_tools": list("bash", "mcp_my notes_wipe")}, "permissions": map[string]any{"allowed_tools": list("view", "mcp_my notes_echo")}},
			"deny mcp:notes/wipe, allow mcp:notes/echo"},
	} {
		decisions, err := Read(client, Config{
			Files: []File{{Path: "/c/" + map[bool]string{true: "crush.json", false: "config"}[client == "crush"]}},
			Read: func(path string, _ bool) (map[string]any, func([]string) []string, error) {
				if path != "/c/"+c.file {
					return nil, nil, nil
				}
				return c.doc, nil, nil
			},
		})
		if err != nil {
			t.Errorf("%s: Read() = %v", client, err)
		}
		made := Translate(Client{Name: client, Title: client, Servers: []Server{{Name: "notes", Client: "my notes"}}}, decisions)
		got := written(made.Rules)
		if strings.Join(got, ", ") != c.want || len(made.Refused) > 0 {
			t.Errorf("%s: rules = %q, refused %v; want %q", client, strings.Join(got, ", "), made.Refused, c.want)
		}
	}
}
