package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

// TestOwn: what is Ken's own is closed to every tool, by whatever name and
// wherever the scope begins, and lists and searches say that they left it out.
func TestOwn(t *testing.T) {
	content := map[string]string{
		"home/state/token": "needle-token\n", "home/state/deep/agent-token": "needle-agent\n", "home/ken.yaml": "needle: yaml\n",
		"home/skills/a/SKILL.md": "needle skill\n", "home/skills/kept/trail": "needle trail\n",
		"state/token": "needle of the project\n", "settings.yaml": "needle settings\n", "other/x": "",
	}
	e, ws := open(t, content, func(c *Config) {
		at := func(name string) string { return filepath.Join(c.Workspace, name) }
		c.Own = []string{at("home"), at("settings.yaml"), at("mcp.json"), at("home/skills/kept"), at("logs")}
		c.OwnReadable = []string{at("home/skills"), at("home/cards")}
	})
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(ws, name)); err != nil {
			t.Skip("cannot here: make a link: ", err)
		}
	}
	link("home", "alias")
	link(filepath.Join(ws, "home/state/token"), "other/token")

	refused := func(c capability.Call, rule string) {
		t.Helper()
		for what, do := range map[string]func() error{
			"Facts":  func() error { _, err := e.Facts(t.Context(), c, nil); return err },
			"Invoke": func() error { _, err := e.Invoke(t.Context(), c); return err },
		} {
			if what == "Facts" && rule == "files.links" {
				continue // a link is met when it is opened
			}
			err, _ := do().(*capability.Error)
			if err == nil || err.Kind != capability.Denied || err.Rule != rule || err.Fix == "" || strings.Contains(err.Error(), "needle") {
				t.Errorf("%s(%s %s) = %v, want a refusal by %s", what, c.Target, c.Arguments, err, rule)
			}
		}
	}
	const diff = "@@ -0,0 +1 @@\n+x\n"
	for _, name := range []string{
		"home/state/token", "home/./state//token", ws + "/home/state/token", "home/state/deep/agent-token", "home/ken.yaml", "HOME/State/token", "settings.yaml", "Settings.YAML",
		"home/skills/kept/trail", "home/new", "home/cards2/x", "logs/x", "mcp.json",
	} {
		refused(call("read_file", "path", name), "files.own")
		refused(call("search_files", "path", name, "regex", "needle"), "files.own")
		refused(call("write_to_file", "path", name, "content", "x"), "files.own")
		refused(call("apply_diff", "path", name, "diff", diff), "files.own")
		refused(call("apply_diff", "diff", "--- /dev/null\n+++ b/"+strings.TrimPrefix(name, ws+"/")+"\n"+diff), "files.own")
	}
	for _, name := range []string{"home", "home/state", "home/skills/kept", "logs"} {
		refused(call("list_files", "path", name), "files.own")
		refused(call("search_files", "path", name, "regex", "needle"), "files.own")
	}
	refused(call("read_file", "path", "alias/state/token"), "files.links")
	refused(call("read_file", "path", "other/token"), "files.links")
	for _, name := range []string{"home/skills/a/SKILL.md", "home/skills/b/run.sh", "home/cards/x.yaml"} {
		refused(call("write_to_file", "path", name, "content", "x"), "files.own")
		refused(call("apply_diff", "path", name, "diff", "@@\n-needle skill\n+x\n"), "files.own")
	}
	if _, err := os.Stat(filepath.Join(ws, "logs")); err == nil {
		t.Error("a refused call made the folder logs")
	}

	if _, text, _ := invoke(t, e, call("read_file", "path", "home/skills/a/SKILL.md")); !strings.Contains(text, "needle skill") {
		t.Errorf("read_file(a skill) = %q", text)
	}
	if _, text, _ := invoke(t, e, call("read_file", "path", "state/token")); !strings.Contains(text, "of the project") {
		t.Errorf("read_file(a file of the same name) = %q", text)
	}
	about, text, _ := invoke(t, e, call("search_files", "regex", "needle"))
	if text != "state/token:1: needle of the project\n" || about["own"] != 2.0 {
		t.Errorf("search_files = %q, %v, want the project's alone and own 2", text, about)
	}
	about, text, r := invoke(t, e, call("list_files", "recursive", true))
	if strings.Contains("\n"+text, "\nhome/") || strings.Contains(text, "settings") || !strings.Contains(text, "state/token\n") || about["own"] != 2.0 || r.Meta["truncated"] != "false" {
		t.Errorf("list_files = %q, %v, want none of Ken's own and own 2", text, about)
	}
	if notes, _ := about["notes"].([]any); len(notes) != 2 || notes[0] != "home is Ken's own and left out" {
		t.Errorf("list_files notes = %v", about["notes"])
	}
	about, text, _ = invoke(t, e, call("list_files", "path", "home/skills", "recursive", true))
	if text != "home/skills/a/\nhome/skills/a/SKILL.md\n" || about["own"] != 1.0 {
		t.Errorf("list_files(skills) = %q, %v", text, about)
	}
}

// TestOwnByWhatItIs: a folder that was reached or made after the start is known
// by what it is, and so is one above or at a scope.
func TestOwnByWhatItIs(t *testing.T) {
	var home, linked string
	e, ws := open(t, map[string]string{"real/state/token": "t\n", "real/skills/s": "s\n", "work/": ""}, func(c *Config) {
		linked = filepath.Join(filepath.Dir(c.Workspace), "by-link")
		if err := os.Symlink(c.Workspace, linked); err != nil {
			t.Skip("cannot here: make a link: ", err)
		}
		home = filepath.Join(linked, "kenhome")
		executortest.Must(t, os.Symlink("real", filepath.Join(c.Workspace, "kenhome")))
		c.Own, c.OwnReadable = []string{home}, []string{filepath.Join(home, "skills")}
		c.Read = []string{filepath.Join(c.Workspace, "real/state"), filepath.Join(linked, "real/skills")}
	})
	denied := func(c capability.Call) {
		t.Helper()
		executortest.Fails(t, e, c, capability.Denied)
	}
	denied(call("read_file", "path", "real/state/token"))
	denied(call("list_files", "path", "real/state"))
	denied(call("read_file", "path", "kenhome/state/token"))
	gives(t, e, call("read_file", "path", linked+"/real/skills/s"), "s\n")
	// Ken's folder moved and the link with it: the same folder under a new name.
	executortest.Must(t, os.Rename(filepath.Join(ws, "real"), filepath.Join(ws, "moved")))
	os.Remove(filepath.Join(ws, "kenhome"))
	executortest.Must(t, os.Symlink("moved", filepath.Join(ws, "kenhome")))
	denied(call("read_file", "path", "moved/state/token"))
	gives(t, e, call("search_files", "regex", "t"), "")
}
