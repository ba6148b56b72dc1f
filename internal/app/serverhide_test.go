package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/auth"
)

// TestToolsAndOwnFiles: started in the home directory, the file tools read and
// change nothing of Ken's own, though a person calls them: neither where it has a
// folder there nor where it is the folder.
func TestToolsAndOwnFiles(t *testing.T) {
	for name, kenHome := range map[string]string{"a folder of it": ".ken", "under another name": "things", "all of it": "."} {
		t.Run(name, func(t *testing.T) {
			dir, env := home(t, map[string]string{"notes.txt": "mine\n"})
			at := filepath.Join(dir, kenHome)
			write(t, filepath.Join(at, "mcp.json"), "{}")
			write(t, filepath.Join(at, "cards", "a.md"), "a card\n")
			if err := os.MkdirAll(filepath.Join(at, "state"), 0o700); err != nil {
				t.Fatal(err)
			}
			tokens, err := auth.Open(filepath.Join(at, "state"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "letter.txt"), "it is "+tokens.Token().Reveal()+" here\n")
			a := open(t, Config{Dir: dir, Getenv: func(name string) string {
				if name == "KEN_HOME" {
					return at
				}
				return env(name)
			}})
			call := func(tool string, arguments map[string]any) (string, error) {
				raw, err := json.Marshal(arguments)
				if err != nil {
					t.Fatal(err)
				}
				view := a.Door.ViewFor(door.Viewer{Principal: a.Principal, Origin: capability.ByPerson})
				res, err := a.Door.Invoke(t.Context(), view, capability.Call{
					Target: capability.ID("tool:" + tool), Arguments: raw, Principal: a.Principal, Session: "s", Key: tool + string(raw), Origin: capability.ByPerson,
				})
				var text strings.Builder
				for _, p := range res.Parts {
					text.WriteString(p.Text)
				}
				return text.String(), err
			}
			for _, file := range []string{"state/token", "state/agent-token", "mcp.json", "ken.yaml", "secrets.age", "extensions/x/manifest.json", "eval.jsonl"} {
				path := filepath.ToSlash(filepath.Join(kenHome, file))
				for tool, arguments := range map[string]map[string]any{"read_file": {"path": path}, "write_to_file": {"path": path, "content": "{}"}} {
					if text, err := call(tool, arguments); capability.KindOf(err) != capability.Denied {
						t.Errorf("%s(%s) = %q, %v, want denied", tool, path, text, err)
					}
				}
			}
			if text, err := call("write_to_file", map[string]any{"path": filepath.ToSlash(filepath.Join(kenHome, "cards/b.md")), "content": "x"}); capability.KindOf(err) != capability.Denied {
				t.Errorf("write_to_file(a card) = %q, %v, want denied", text, err)
			}
			if text, err := call("read_file", map[string]any{"path": filepath.ToSlash(filepath.Join(kenHome, "cards/a.md"))}); err != nil || !strings.Contains(text, "a card") {
				t.Errorf("read_file(a card) = %q, %v", text, err)
			}
			if text, err := call("read_file", map[string]any{"path": "notes.txt"}); err != nil || !strings.Contains(text, "mine") {
				t.Errorf("read_file(notes.txt) = %q, %v", text, err)
			}
			text, err := call("search_files", map[string]any{"regex": "[A-Za-z0-9_-]{43}|it is"})
			if err != nil || !strings.Contains(text, "letter.txt") || strings.Contains(text, "state/") || strings.Contains(text, tokens.Token().Reveal()) || strings.Contains(text, tokens.Agent().Reveal()) {
				t.Errorf("search_files = %q, %v, want the letter, without the token", text, err)
			}
		})
	}
}

// TestCommandsOfAgents: an agent has the commands that it sees, though it works
// for whoever has them all.
func TestCommandsOfAgents(t *testing.T) {
	dir, getenv := home(t, nil)
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "policy: {rules: [{id: none, effect: deny, capabilities: ['tool:read_file']}]}\n")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	for decides, want := range map[bool]bool{true: true, false: false} {
		who := auth.Identity{Principal: a.Principal, Decides: decides}
		if got := a.Commands.For(callerOf(who)).Is("/read_file a.txt"); got != want {
			t.Errorf("/read_file is a command of who decides (%v): %v, want %v", decides, got, want)
		}
		if !a.Commands.For(callerOf(who)).Is("/list_files") {
			t.Errorf("/list_files is no command of who decides (%v)", decides)
		}
		if _, err := a.Commands.Route(t.Context(), callerOf(who), "/read_file a.txt"); (err == nil) != want {
			t.Errorf("Route(who decides: %v) = %v", decides, err)
		}
	}
}
