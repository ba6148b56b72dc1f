package app

import (
	"encoding/json"
	"fmt"
	"testing"

	"ken/capability"
)

// TestToolsAndOwnFiles: where the workspace is Ken's own folder, the file tools read
// and change nothing that governs it, though a person calls them. script/api_home
// has a workspace with that folder in it.
func TestToolsAndOwnFiles(t *testing.T) {
	dir, _ := home(t, map[string]string{"mcp.json": "{}", "cards/a.md": "a card\n", "state/token": "x"})
	a := open(t, Config{Dir: dir, Getenv: func(name string) string { return map[string]string{"HOME": dir, "KEN_HOME": dir}[name] }})
	for tool, files := range map[string][]string{
		"read_file":     {"state/token", "state/agent-token", "mcp.json", "ken.yaml", "secrets.age", "extensions/x/manifest.json", "eval.jsonl"},
		"write_to_file": {"state/token", "mcp.json", "ken.yaml", "extensions/x/manifest.json", "cards/b.md"},
	} {
		for _, file := range append(files, "cards/a.md") {
			arguments := fmt.Sprintf(`{"path": %q, "content": "{}"}`, file)
			if tool == "read_file" {
				arguments = fmt.Sprintf(`{"path": %q}`, file)
			}
			_, err := a.Door.Invoke(t.Context(), person(a), capability.Call{
				Target: capability.ID("tool:" + tool), Arguments: json.RawMessage(arguments), Session: "s", Key: tool + file, Origin: capability.ByPerson,
			})
			if may := tool == "read_file" && file == "cards/a.md"; may != (err == nil) || !may && capability.KindOf(err) != capability.Denied {
				t.Errorf("%s(%s) = %v, want that it may: %v", tool, file, err, may)
			}
		}
	}
}
